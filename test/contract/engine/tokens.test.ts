import { describe, expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { parseTokens } from "../../../src/config/bearer-tokens.ts";
import { TokenList } from "../../../src/engine/http/token-list.ts";
import { FakeEngine } from "../../support/fake-engine.ts";
import { TemporaryDirectory } from "../../support/temporary-directory.ts";

const bearer = (token: string) => ({ headers: { authorization: `Bearer ${token}` } });

test("without a valid token everything answers the same 401", async () => {
  await using engine = await FakeEngine.open({ ANVIL_API_TOKEN: "right" });
  for (const init of [{}, bearer("wrong"), { headers: { authorization: "Basic right" } }, bearer("")]) {
    const { status, json, headers } = await engine.request("GET", "/vms", init);
    expect([status, json]).toEqual([401, { error: "unauthorized" }]);
    expect(headers.get("www-authenticate")).toBe('Bearer realm="ephemera"');
  }
  expect((await engine.request("GET", "/nowhere")).status).toBe(401);
  expect((await engine.request("GET", "/vms", bearer("right"))).status).toBe(200);
  expect((await engine.request("GET", "/health", bearer("right"))).json).toMatchObject({
    auth_enabled: true,
  });
});

test("an expired token is no token", async () => {
  const past = Math.floor(Date.now() / 1000) - 1;
  await using engine = await FakeEngine.open({
    EPHEMERA_API_TOKENS: `a:old:${past},b:new:2999-01-01T00:00:00Z`,
  });
  expect((await engine.request("GET", "/vms", bearer("old"))).status).toBe(401);
  expect((await engine.request("GET", "/vms", bearer("new"))).status).toBe(200);
});

test("the first source of tokens that is set decides alone", async () => {
  using directory = new TemporaryDirectory();
  const path = directory.join("tokens");
  writeFileSync(path, "# people\nfile:f\n");
  const all = {
    EPHEMERA_API_TOKENS_FILE: path,
    EPHEMERA_API_TOKENS: "list:l",
    ANVIL_API_TOKENS: "anvils:al",
    EPHEMERA_API_TOKEN: "s",
    ANVIL_API_TOKEN: "as",
  };
  const names = Object.keys(all) as (keyof typeof all)[];
  const tokens = ["f", "l", "al", "s", "as"];
  for (const [index, token] of tokens.entries()) {
    const env = Object.fromEntries(names.slice(index).map((name) => [name, all[name]]));
    const list = new TokenList(env);
    expect(tokens.filter((candidate) => list.clientOf(candidate) !== null)).toEqual([token]);
  }
  expect(new TokenList({}).isEmpty).toBe(true);
});

test("a reload reads the file again, and keeps the old tokens when that fails", async () => {
  using directory = new TemporaryDirectory();
  const path = directory.join("tokens");
  writeFileSync(path, "a:one");
  const list = new TokenList({ EPHEMERA_API_TOKENS_FILE: path });
  writeFileSync(path, "a:two\nb:three");
  list.reload();
  expect([list.clientOf("one"), list.clientOf("two"), list.clientOf("three")]).toEqual([null, "a", "b"]);
  writeFileSync(path, "nonsense");
  expect(() => list.reload()).toThrow("is not name:token[:expires]");
  expect(list.clientOf("two")).toBe("a");
});

test.each(["a", "a:", ":t", "a:t:soon", "a:t:2026-13-01", "", "a b:t"])(
  "tokens %j are refused without being told",
  (text) => {
    expect(() => parseTokens(text, "TOKENS")).toThrow(/TOKENS/);
    expect(() => parseTokens("name:s3cret:soon", "TOKENS")).not.toThrow(/s3cret/);
  },
);

test.each([" ", "two words", "a\nb"])("a single token %j is refused, which nobody could send", (text) => {
  expect(() => new TokenList({ ANVIL_API_TOKEN: text })).toThrow("ANVIL_API_TOKEN is set and is no token");
});

test("times of expiry are RFC 3339 or seconds", () => {
  const [first, second] = parseTokens("a:t:2026-01-01T00:00:00+01:00\nb:u:1700000000", "TOKENS");
  expect(first?.expiresAt).toBe(Date.parse("2025-12-31T23:00:00Z"));
  expect(second?.expiresAt).toBe(1_700_000_000_000);
});

describe("an engine without tokens", () => {
  const ask = async (headers: Record<string, string>, env: Record<string, string> = {}) => {
    await using engine = await FakeEngine.open({ ANVIL_API_ADDR: "127.0.0.2:3000", ...env });
    return await engine.request("POST", "/vms", { headers });
  };

  test.each(["localhost:3000", "127.0.0.1:3000", "127.0.0.2:3000", "[::1]:3000"])(
    "is reached as %s",
    async (host) => {
      expect((await ask({ host })).status).toBe(201);
    },
  );

  test.each(["rebound.example:3000", "127.0.0.1.example", "", "a b"])(
    "is not reached as %p",
    async (host) => {
      const { status, json } = await ask({ host });
      expect(status).toBe(403);
      expect(json).toEqual({ error: expect.stringContaining(`under the Host ${JSON.stringify(host)}`) });
    },
  );

  test("takes no request of a web page", async () => {
    const { status, json } = await ask({ host: "localhost:3000", origin: "http://page.example" });
    expect([status, json]).toEqual([403, { error: expect.stringContaining("web pages") }]);
  });

  test("is reached by its public name", async () => {
    const env = { EPHEMERA_PUBLIC_URL: "https://engine.example" };
    expect((await ask({ host: "engine.example" }, env)).status).toBe(201);
  });

  test("asks nothing of these once it has a token, or listens on a socket", async () => {
    const page = { host: "engine.example", origin: "http://page.example" };
    const bearing = { ...page, authorization: "Bearer right" };
    expect((await ask(bearing, { ANVIL_API_TOKEN: "right" })).status).toBe(201);
    expect((await ask(page, { ANVIL_API_ADDR: "unix:/tmp/engine.sock" })).status).toBe(201);
  });
});
