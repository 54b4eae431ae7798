import { expect, test } from "bun:test";

interface Posted {
  url: string;
  body: unknown;
}

/** Plays the proxy: answers every request with `answer`, and keeps what came. */
async function gtwall(answer: Response | null, ...args: string[]) {
  const posted: Posted[] = [];
  using proxy = Bun.listen<{ text: string }>({
    hostname: "127.0.0.1",
    port: 0,
    socket: {
      open(socket) {
        socket.data = { text: "" };
      },
      async data(socket, bytes) {
        socket.data.text += bytes.toString();
        const [head = "", body = ""] = socket.data.text.split("\r\n\r\n");
        const length = Number(/^content-length: (\d+)$/im.exec(head)?.[1]);
        if (!(Buffer.byteLength(body) >= length)) return;
        posted.push({ url: head.split("\r\n")[0]!, body: JSON.parse(body) });
        if (answer !== null)
          socket.write(`HTTP/1.1 ${answer.status} Some\r\nX: y\r\n\r\n${await answer.text()}`);
        socket.end();
      },
    },
  });
  const env = { GTWALL_PORT: String(proxy.port) };
  const child = Bun.spawn([process.env["GTWALL"]!, ...args], { env, stderr: "pipe", stdout: "pipe" });
  const stderr = await child.stderr.text();
  return { code: await child.exited, stderr, stdout: await child.stdout.text(), posted };
}

test("a message is posted as JSON through the proxy, and nothing is printed", async () => {
  const message = 'say "hi"\n\tto \\ 한글 \u0001';
  const { code, stderr, stdout, posted } = await gtwall(new Response("{}", { status: 201 }), message);
  expect({ code, stderr, stdout }).toEqual({ code: 0, stderr: "", stdout: "" });
  expect(posted).toEqual([
    { url: "POST http://ignition.internal/townwall/post HTTP/1.1", body: { body: message } },
  ]);
});

test("a refusal is told with its status and its reason, without control characters", async () => {
  const answer = new Response("not in \u001b[1ma flock\nmore", { status: 403 });
  const { code, stderr } = await gtwall(answer, "x");
  expect(code).toBe(1);
  expect(stderr).toBe("gtwall: the engine refused the message with status 403: not in ?[1ma flock\n");
});

test("want of an engine, of an answer and of a message are told apart from it", async () => {
  const closed = await gtwall(null, "x");
  expect(closed.code).toBe(3);
  expect(closed.stderr).toContain("no engine is reached at 127.0.0.1");
  for (const args of [[], ["a", "b"]]) {
    const usage = await gtwall(null, ...args);
    expect(usage.code).toBe(2);
    expect(usage.stderr).toStartWith('usage: gtwall "MESSAGE"\n');
  }
  const empty = await gtwall(null, "");
  expect(empty).toMatchObject({ code: 2, stderr: "gtwall: the message is empty\n", posted: [] });
});
