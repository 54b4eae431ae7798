const AUTHORITY = /^([a-z][a-z0-9+.-]*):\/\/([^/?#]*)/i;

/** Why a text is no base URL of a daemon, completing "it must …"; null when it is one. */
export function daemonUrlProblem(text: string): string | null {
  if (text === "") return "not be empty";
  const [, scheme, authority] = AUTHORITY.exec(text) ?? [];
  if (!scheme || !/^https?$/i.test(scheme)) return "have the scheme http or https";
  if (!authority) return "have a host";
  if (authority.includes("@")) return "not carry a user or password; the token has a setting of its own";
  if (/[?#]/.test(text)) return "end with its host, port or path";
  return URL.canParse(text) ? null : "be a URL such as http://127.0.0.1:3000";
}

/** Without slashes at its end, so that paths can follow. */
export function parseDaemonUrl(text: string): string {
  return text.replace(/\/+$/, "");
}
