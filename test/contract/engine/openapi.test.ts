import { expect, test } from "bun:test";
import { join } from "node:path";
import { openApiDocument } from "../../../src/engine/http/document.ts";
import { FakeEngine } from "../../support/fake-engine.ts";

interface Document {
  paths: Record<string, Record<string, { responses: Record<string, unknown> }>>;
}

const committed = await Bun.file(join(import.meta.dir, "../../../docs/openapi.json")).text();
const { paths } = JSON.parse(committed) as Document;
const METHODS = ["GET", "POST", "PUT", "DELETE", "PATCH"];
const concrete = (path: string) => path.replaceAll(/\{[^}]+\}/g, "vm-1");

test("docs/openapi.json is what the routes say, as scripts/openapi writes it", async () => {
  await using fake = await FakeEngine.open();
  expect(JSON.parse(JSON.stringify(openApiDocument(fake.engine.app)))).toEqual(JSON.parse(committed));
  expect((await fake.get("/openapi.json")).json).toEqual(JSON.parse(committed));
});

test("every operation but /metrics answers 401 without a token", async () => {
  await using fake = await FakeEngine.open({ ANVIL_API_TOKEN: "t" });
  for (const [path, operations] of Object.entries(paths)) {
    for (const method of Object.keys(operations).filter(() => path !== "/metrics")) {
      const { status } = await fake.request(method.toUpperCase(), concrete(path));
      expect([method, path, status]).toEqual([method, path, 401]);
    }
  }
});

test("every path answers methods it does not have with 405", async () => {
  await using fake = await FakeEngine.open();
  for (const [path, operations] of Object.entries(paths)) {
    const has = Object.keys(operations).map((method) => method.toUpperCase());
    for (const method of METHODS.filter((candidate) => !has.includes(candidate))) {
      const { status, text, headers } = await fake.request(method, concrete(path));
      expect([method, path, status, text]).toEqual([method, path, 405, "method not allowed"]);
      expect(headers.get("allow")).toBe([...has].sort().join(", "));
    }
  }
});

test("every operation with a JSON body refuses other content, torn JSON, and too much of it", async () => {
  await using fake = await FakeEngine.open();
  const withBody = Object.entries(paths).flatMap(([path, operations]) =>
    Object.entries(operations)
      .filter(([, operation]) => "415" in operation.responses)
      .map(([method]) => [method.toUpperCase(), concrete(path)] as const),
  );
  expect(withBody.length).toBeGreaterThan(3);
  for (const [method, path] of withBody) {
    const send = async (body: string, type: string) => {
      const headers = { "content-type": type, "content-length": String(body.length) };
      return (await fake.request(method, path, { body, headers })).status;
    };
    expect([path, await send("x", "text/plain")]).toEqual([path, 415]);
    expect([path, await send('{"a":', "application/json")]).toEqual([path, 400]);
    expect([path, await send(`"${"x".repeat(1_048_576)}"`, "application/json")]).toEqual([path, 413]);
  }
});
