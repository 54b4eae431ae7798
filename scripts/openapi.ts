import { join } from "node:path";
import { openApiDocument } from "../src/engine/http/document.ts";
import { FakeEngine } from "../test/support/fake-engine.ts";

await using fake = await FakeEngine.open();
const path = join(import.meta.dir, "../docs/openapi.json");
await Bun.write(path, `${JSON.stringify(openApiDocument(fake.engine.app), null, 2)}\n`);
