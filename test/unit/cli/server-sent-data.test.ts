import { expect, test } from "bun:test";
import { serverSentData } from "../../../src/cli/server-sent-data.ts";

async function dataOf(...chunks: string[]): Promise<string[]> {
  const stream = new ReadableStream<Uint8Array>({
    start(controller) {
      for (const chunk of chunks) controller.enqueue(Buffer.from(chunk, "latin1"));
      controller.close();
    },
  });
  return await Array.fromAsync(serverSentData(stream));
}

test("events are their data, whatever the line ends and wherever the chunks are cut", async () => {
  const text =
    ": beat\n\ndata: one\n\nid: 7\ndata:two\ndata:  lines\r\n\r\nevent: x\n\ndata: \xc3\xa9\r\rdata: half";
  const expected = ["one", "two\n lines", "é"];
  expect(await dataOf(text)).toEqual(expected);
  expect(await dataOf(...text)).toEqual(expected);
});
