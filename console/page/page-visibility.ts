/**
 * A hidden page costs its watches and its polls. It disconnects after a minute, and reads everything again when it is
 * shown.
 */
const HIDDEN_MS_MAX = 60_000;

/** Runs `connect` now, and again when the page is shown after its connection was ended. Returns what stops both. */
export function whileShown(connect: (signal: AbortSignal) => void): () => void {
  let ending = new AbortController();
  let timer: ReturnType<typeof setTimeout> | undefined;
  const onVisibility = (): void => {
    clearTimeout(timer);
    if (document.hidden) {
      timer = setTimeout(() => ending.abort(), HIDDEN_MS_MAX);
    } else if (ending.signal.aborted) {
      ending = new AbortController();
      connect(ending.signal);
    }
  };
  document.addEventListener('visibilitychange', onVisibility);
  connect(ending.signal);
  return () => {
    document.removeEventListener('visibilitychange', onVisibility);
    clearTimeout(timer);
    ending.abort();
  };
}
