import { expect, test } from "bun:test";
import { parseAuthority, textOf } from "../../../src/egress/destination.ts";
import { EgressError } from "../../../src/egress/egress-error.ts";
import { endOfHead, parseHead } from "../../../src/egress/http-head.ts";
import { encodeHead, readConnectTarget, readHttpRequest } from "../../../src/egress/http-request.ts";

const TO = "http://a.example/";
const INSIDE = parseAuthority("a.example", 80)!;

function head(firstLine: string, ...fields: string[]) {
  return parseHead(Buffer.from(`${[firstLine, ...fields].join("\r\n")}\r\n\r\n`, "latin1"));
}

function codeOf(act: () => unknown): string {
  try {
    act();
  } catch (error) {
    if (error instanceof EgressError) return error.code;
    throw error;
  }
  return "taken";
}

function forwarded(firstLine: string, ...fields: string[]): string[] {
  const bytes = encodeHead(readHttpRequest(head(firstLine, ...fields), null));
  return Buffer.from(bytes).toString("latin1").split("\r\n").slice(0, -2);
}

test("a head ends with its empty line", () => {
  expect(endOfHead(Buffer.from("GET / HTTP/1.1\r\nA: b\r\n\r\nrest"))).toBe(24);
  expect(endOfHead(Buffer.from("GET / HTTP/1.1\r\nA: b\r\n"))).toBe(-1);
});

test.each([
  ["a lone LF", ["GET http://a.example/ HTTP/1.1", "Host: a.example\nX: y"]],
  ["a lone CR", ["GET http://a.example/ HTTP/1.1", "Host: a.example\rX: y"]],
  ["a NUL", ["GET http://a.example/ HTTP/1.1", "Host: a.example", "X: \0"]],
  ["a folded line", ["GET http://a.example/ HTTP/1.1", "Host: a.example", "X: y", " z"]],
  ["a space before a colon", ["GET http://a.example/ HTTP/1.1", "Host : a.example"]],
  ["a field without a name", ["GET http://a.example/ HTTP/1.1", "Host: a.example", ": x"]],
  ["a line without a colon", ["GET http://a.example/ HTTP/1.1", "Host: a.example", "x"]],
  ["no host", ["GET http://a.example/ HTTP/1.1"]],
  ["two hosts", ["GET http://a.example/ HTTP/1.1", "Host: a.example", "Host: a.example"]],
  ["two spaces", ["GET  http://a.example/ HTTP/1.1", "Host: a.example"]],
  ["HTTP/2", ["GET http://a.example/ HTTP/2.0", "Host: a.example"]],
  ["HTTP/0.9", ["GET /"]],
  ["a length and chunks", ["POST / HTTP/1.1", "Host: a", "Content-Length: 1", "Transfer-Encoding: chunked"]],
  ["two lengths", ["POST / HTTP/1.1", "Host: a", "Content-Length: 1", "Content-Length: 1"]],
  ["a list of lengths", ["POST / HTTP/1.1", "Host: a", "Content-Length: 1, 1"]],
  ["a length with a sign", ["POST / HTTP/1.1", "Host: a", "Content-Length: +1"]],
  ["a length in hex", ["POST / HTTP/1.1", "Host: a", "Content-Length: 0x1"]],
  ["a length that is too large", ["POST / HTTP/1.1", "Host: a", "Content-Length: 9999999999999999"]],
  ["two codings", ["POST / HTTP/1.1", "Host: a", "Transfer-Encoding: gzip, chunked"]],
  ["chunks that are not", ["POST / HTTP/1.1", "Host: a", "Transfer-Encoding: xchunked"]],
  [
    "chunks twice",
    ["POST / HTTP/1.1", "Host: a", "Transfer-Encoding: chunked", "Transfer-Encoding: chunked"],
  ],
  ["chunks in HTTP/1.0", ["POST / HTTP/1.0", "Host: a", "Transfer-Encoding: chunked"]],
  ["too many fields", ["GET / HTTP/1.1", "Host: a", ...Array.from({ length: 200 }, () => "A: b")]],
])("%s is refused", (_, [first, ...fields]) => {
  expect(codeOf(() => head(first!, ...fields))).toBe("bad_request");
});

test.each([
  ["GET https://a.example/ HTTP/1.1", "Host: a.example", "bad_request"],
  ["GET ftp://a.example/ HTTP/1.1", "Host: a.example", "bad_request"],
  ["GET / HTTP/1.1", "Host: a.example", "bad_request"],
  ["GET http://user@a.example/ HTTP/1.1", "Host: a.example", "bad_request"],
  ["GET http://a.example/#x HTTP/1.1", "Host: a.example", "bad_request"],
  ["GET http:/// HTTP/1.1", "Host: a.example", "bad_request"],
  ["OPTIONS * HTTP/1.1", "Host: a.example", "bad_request"],
  ["CONNECT http://a.example/ HTTP/1.1", "Host: a.example", "bad_request"],
  ["GET http://a.example/ HTTP/1.1", "Host: b.example", "host_mismatch"],
  ["GET http://a.example:8080/ HTTP/1.1", "Host: a.example", "host_mismatch"],
  ["GET http://a.example/ HTTP/1.1", "Host:", "host_mismatch"],
  ["GET http://A.example:80/ HTTP/1.1", "Host: a.EXAMPLE.", "taken"],
])("%s with %s: %s", (first, host, expected) => {
  expect(codeOf(() => readHttpRequest(head(first, host), null))).toBe(expected);
});

test.each([
  ["CONNECT a.example:443 HTTP/1.1", ["Host: a.example:443"], "taken"],
  ["CONNECT a.example:443 HTTP/1.1", ["Host: a.example"], "taken"],
  ["CONNECT a.example:443 HTTP/1.0", [], "taken"],
  ["CONNECT a.example:443 HTTP/1.1", ["Host: b.example:443"], "host_mismatch"],
  ["CONNECT a.example HTTP/1.1", ["Host: a.example"], "bad_request"],
  ["CONNECT https://a.example:443 HTTP/1.1", ["Host: a.example"], "bad_request"],
  ["CONNECT a.example:443 HTTP/1.1", ["Host: a.example", "Content-Length: 5"], "bad_request"],
  ["CONNECT a.example:443 HTTP/1.1", ["Host: a.example", "Transfer-Encoding: chunked"], "bad_request"],
])("%s with %j: %s", (first, fields, expected) => {
  expect(codeOf(() => readConnectTarget(head(first, ...fields)))).toBe(expected);
});

test("the server gets a head that is made anew, without what was for the proxy", () => {
  expect(
    forwarded(
      "POST http://A.example?q=1 HTTP/1.1",
      "HOST:  a.example ",
      "Proxy-Authorization: Basic x",
      "Proxy-Connection: keep-alive",
      "Connection: keep-alive, X-Hop",
      "X-Hop: 1",
      "TE: trailers",
      "Upgrade: h2c",
      "X-Kept: \xe4 b",
      "Content-Length: 3",
    ),
  ).toEqual(["POST /?q=1 HTTP/1.1", "host: a.example", "x-kept: \xe4 b", "content-length: 3"]);
});

test("the last request says so, whatever the version", () => {
  expect(forwarded(`GET ${TO} HTTP/1.1`, "Host: a.example", "Connection: close")).toContain(
    "connection: close",
  );
  expect(forwarded(`GET ${TO} HTTP/1.0`)).toEqual(["GET / HTTP/1.0", "host: a.example", "connection: close"]);
  expect(forwarded(`GET ${TO} HTTP/1.0`, "Connection: Keep-Alive")).toContain("connection: keep-alive");
});

test("Connection cannot take away what frames the request", () => {
  for (const name of ["host", "Content-Length", "transfer-encoding"])
    expect(
      codeOf(() => forwarded(`GET ${TO} HTTP/1.1`, "Host: a.example", `Connection: close, ${name}`)),
    ).toBe("bad_request");
});

test("inside a tunnel a request has a path, and the tunnel's host", () => {
  const read = (first: string, host: string) => readHttpRequest(head(first, host), INSIDE);
  expect(textOf(read("GET /x HTTP/1.1", "Host: a.example").destination)).toBe("a.example:80");
  expect(codeOf(() => read("GET /x HTTP/1.1", "Host: b.example"))).toBe("host_mismatch");
  expect(codeOf(() => read("GET http://b.example/ HTTP/1.1", "Host: a.example"))).toBe("bad_request");
});
