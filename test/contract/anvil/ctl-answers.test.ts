/** `ignition-mcp ctl` in front of something that is no daemon. */
import { describe, expect, test } from "bun:test";
import { EXIT } from "../../../src/cli/exit-codes.ts";
import { COMMANDS, fittingAnswer } from "./ctl-table.ts";
import { useCtl } from "./use-ctl.ts";

const fixture = useCtl();
const { ctl } = fixture;
const SHOWN = COMMANDS.filter(([args]) => !args.includes("--json"));

describe.each([
  ["an object of something else", "[{}]", '{"hello":"not a list"}'],
  ["a page", "<!doctype html><p>It works!", "<!doctype html><p>It works!"],
])("%s instead of the documented answer", (_name, insteadOfRecord, insteadOfList) => {
  test.each(SHOWN)("is not taken for one by %j", async (args, request) => {
    const fitting = fittingAnswer(...(request.split(" ") as [string, string]));
    const isRecord = (await fitting.text()).startsWith("{");
    fixture.daemon.answer = () => new Response(isRecord ? insteadOfRecord : insteadOfList);
    const err = `ignition-mcp: ${fixture.daemon.url} answered ${request}, but not as documented. Check that EPHEMERA_CTL_URL leads to an ignition-mcp daemon.\n`;
    expect(await ctl(...args)).toEqual({ code: EXIT.failed, out: "", err });
    expect(await ctl(...args, "--json")).toMatchObject({ code: EXIT.failed, out: "" });
  });

  test("is not taken for a wall to follow", async () => {
    fixture.daemon.answer = () => new Response(insteadOfList);
    const { code, err } = await ctl("flock", "wall", "f");
    expect(code).toBe(EXIT.failed);
    expect(err).toContain("answered GET /flocks/f/wall, but not as documented");
  });
});
