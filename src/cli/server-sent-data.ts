const MAX_EVENT_CHARS = 16 * 1_048_576;

/** The data of each event of a text/event-stream (WHATWG HTML, 9.2); comments and other fields are passed over. */
export async function* serverSentData(stream: ReadableStream<Uint8Array>): AsyncGenerator<string> {
  const decoder = new TextDecoder();
  let rest = "";
  let data: string[] = [];
  for await (const chunk of stream as unknown as AsyncIterable<Uint8Array>) {
    const lines = (rest + decoder.decode(chunk, { stream: true })).split(/\r\n|\n|\r(?!$)/);
    rest = lines.pop() ?? "";
    for (const line of lines) {
      if (line.startsWith("data:")) data.push(line.slice(5).replace(/^ /, ""));
      if (line !== "" || data.length === 0) continue;
      yield data.join("\n");
      data = [];
    }
    if (rest.length + data.reduce((sum, line) => sum + line.length, 0) > MAX_EVENT_CHARS)
      throw new Error("An event of the stream is too long.");
  }
}
