export type Decoded = { bytes: Uint8Array } | { problem: string };

/** Decodes standard base64 with its padding; white space between the characters is skipped. */
export function decodeBase64(text: string): Decoded {
  try {
    return { bytes: Uint8Array.fromBase64(text, { lastChunkHandling: "strict" }) };
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
    return { problem: findProblem(text) };
  }
}

function findProblem(text: string): string {
  const stray = /[^A-Za-z0-9+/=\s]/u.exec(text);
  if (stray) {
    const hint = stray[0] === "-" || stray[0] === "_" ? " of the URL alphabet" : "";
    return `has ${JSON.stringify(stray[0])}${hint} at character ${stray.index + 1}`;
  }
  return "is cut short or has wrong = padding";
}
