/**
 * Runs a handler's callback. One that throws is a fault of ours: it surfaces as an uncaught error,
 * and neither ends the connection nor holds up the others.
 */
export function callHandler(callback: () => void): void {
  try {
    callback();
  } catch (thrown) {
    queueMicrotask(() => {
      throw thrown;
    });
  }
}
