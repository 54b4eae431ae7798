import { expect, test } from "bun:test";
import { join } from "node:path";
import { loadHttpSettings } from "../../../src/config/load-http-settings.ts";
import { HttpGate } from "../../../src/mcp/http-gate.ts";

const text = await Bun.file(join(import.meta.dir, "../../../docs/http.md")).text();

test("the server that docs/http.md starts lets in the client that it configures", () => {
  const [, hosts] = /IGN_MCP_HTTP_HOSTS=(\S+)/.exec(text)!;
  const [, http] = /serve --http (0\.0\.0\.0:\S+)/.exec(text)!;
  const [, url] = /"url": "([^"]+)"/.exec(text)!;
  const settings = loadHttpSettings({ IGN_MCP_HTTP_TOKEN: "t", IGN_MCP_HTTP_HOSTS: hosts }, { http: http! });
  const { host } = new URL(url!);
  const request = new Request(url!, { method: "POST", headers: { host, authorization: "Bearer t" } });
  expect(new HttpGate(settings).admit(request)).toEqual({ principal: expect.any(String) });
  expect(host).toEndWith(http!.replace("0.0.0.0", ""));
});
