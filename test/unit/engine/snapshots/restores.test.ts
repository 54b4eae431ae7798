import { describe, expect, test } from "bun:test";
import type { EngineError } from "../../../../src/engine/engine-error.ts";
import { rejection } from "../../../support/rejection.ts";
import { flipBit } from "../../../support/test-store.ts";
import { AS_IT_WAS, DIFF, FakeHost, FOREVER, FULL } from "./fake-host.ts";

const take = (host: FakeHost, request: typeof FULL | typeof DIFF = FULL) =>
  host.snapshots.take("vm-1", request, FOREVER);
const restore = (host: FakeHost, id: string) => host.snapshots.restore(id, AS_IT_WAS, FOREVER);
const refusal = (promise: Promise<unknown>) => rejection<EngineError>(promise);

describe("a restore", () => {
  test.each(["memory.bin", "state.bin"])(
    "of a snapshot with one bit of %s flipped is refused",
    async (name) => {
      using host = await FakeHost.open();
      host.start("vm-1");
      const { snapshot_id } = await take(host);
      flipBit(host.at(snapshot_id, name), 7);
      const { status, body } = await refusal(restore(host, snapshot_id));
      expect(status).toBe(500);
      expect(body).toMatchObject({ code: "firecracker_restore_failed", source_snapshot_id: snapshot_id });
      expect((body as { error: string }).error).toContain(`${name} is not what its manifest says`);
      expect(host.restored.size).toBe(0);
    },
  );

  test("over a damaged base of a diff, or on another root, is refused", async () => {
    using host = await FakeHost.open();
    host.start("vm-1");
    const full = await take(host);
    const diff = await take(host, DIFF);
    host.rootfs = { ...host.rootfs, sha256: "f".repeat(64) };
    await host.restart();
    expect((await refusal(restore(host, full.snapshot_id))).message).toContain("another root file system");
    flipBit(host.at(full.snapshot_id, "memory.bin"), 1);
    expect((await refusal(restore(host, diff.snapshot_id))).body).toMatchObject({
      code: "firecracker_restore_failed",
    });
  });

  test("is for its tenant, and under its egress policy, an unset one being 'profile'", async () => {
    using host = await FakeHost.open();
    host.start("vm-1");
    Object.assign(host.vmFields, { tenantId: "acme" });
    const { snapshot_id } = await take(host);
    const as = (tenantId: string | undefined, egressPolicy?: "profile" | "allow_all") =>
      host.snapshots.restore(snapshot_id, { tenantId, egressPolicy }, FOREVER);
    expect((await refusal(as("other"))).body).toMatchObject({ code: "tenant_mismatch" });
    expect((await refusal(as("acme", "allow_all"))).body).toMatchObject({
      error:
        "egress_policy does not match snapshot egress_policy: it is profile, and allow_all was asked for",
      code: "egress_policy_mismatch",
    });
    expect((await as("acme", "profile")).order).toMatchObject({ tenantId: "acme", egressPolicy: "profile" });
    expect((await as(undefined)).order).toMatchObject({ tenantId: "acme", egressPolicy: undefined });
  });
});

describe("without the image", () => {
  test("a restore, an export and an import say so, and leave nothing", async () => {
    using host = await FakeHost.open();
    host.start("vm-1");
    const { snapshot_id: id } = await take(host);
    const bundle = await host.bundle(id);
    host.rootfsFailure = new Error("the image is missing; run scripts/build");
    const reason = "the image is missing; run scripts/build";
    expect(await refusal(restore(host, id))).toMatchObject({
      status: 500,
      body: { error: reason, code: "firecracker_restore_failed", source_snapshot_id: id },
    });
    expect(await refusal(host.bundle(id))).toMatchObject({
      status: 500,
      body: { error: "snapshot_export_failed", reason },
    });
    expect(await refusal(host.import(bundle))).toMatchObject({
      status: 500,
      body: { error: "snapshot_import_failed", reason },
    });
    expect(host.names()).toEqual([id]);
  });
});
