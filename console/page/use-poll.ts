/** Reads something now and then, while a view is shown. */
import { useEffect, useRef, useState } from 'preact/hooks';
import { messageOf } from './cluster-feed.ts';

export interface Polled<T> {
  readonly value: T | undefined;
  /** Why the last read failed. The value is then that of an earlier one. */
  readonly failure: string | undefined;
}

/**
 * `key`: what is read. Another key starts again without a value. The next read starts `periodMs` after the last ended,
 * or at once when `wake` changes.
 */
export function usePoll<T>(key: string, periodMs: number, read: () => Promise<T>, wake = ''): Polled<T> {
  const [state, setState] = useState<Polled<T> & { readonly key: string }>({
    key,
    value: undefined,
    failure: undefined,
  });
  // What is read may follow the view without another start: a fleet that changes each second would start each second.
  const latest = useRef(read);
  latest.current = read;
  useEffect(() => {
    let timer: ReturnType<typeof setTimeout> | undefined;
    let isShown = true;
    const run = async (): Promise<void> => {
      if (!document.hidden) {
        try {
          const value = await latest.current();
          if (isShown) setState({ key, value, failure: undefined });
        } catch (error) {
          if (isShown) {
            setState((last) => ({ key, value: last.key === key ? last.value : undefined, failure: messageOf(error) }));
          }
        }
      }
      if (isShown) timer = setTimeout(run, periodMs);
    };
    void run();
    return () => {
      isShown = false;
      clearTimeout(timer);
    };
  }, [key, periodMs, wake]);
  return state.key === key ? state : { value: undefined, failure: undefined };
}
