const FIRST_HOST = 2;
const LAST_HOST = 254;
const LAST_NETWORK = 254;

/** The lowest label `10.0.<network>.<host>` that no VM has. No packet ever goes there: guests have no network card. */
export function freeGuestAddress(taken: ReadonlySet<string>): string {
  for (let network = 1; network <= LAST_NETWORK; network++) {
    for (let host = FIRST_HOST; host <= LAST_HOST; host++) {
      const address = `10.0.${network}.${host}`;
      if (!taken.has(address)) return address;
    }
  }
  throw new RangeError("all guest addresses are taken");
}
