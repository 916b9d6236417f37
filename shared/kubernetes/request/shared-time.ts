/**
 * Computing time of a process, divided among the requests that it serves at the same time. Which of them a process computes
 * for is not known. Each pays an equal part while it is served. Together they pay what was computed, once. An execution
 * environment of Lambda serves one request at a time, which pays all of it.
 */
export interface SharedTime {
  /** A request begins. */
  begin(): Sharer;
}

export interface Sharer {
  /** The request has ended. @returns its part of the computing time. Milliseconds */
  end(): number;
}

/** @param busyMs time that this thread has computed, from any origin. Milliseconds */
export function sharedTime(busyMs: () => number): SharedTime {
  let sharers = 0;
  let readMs = 0;
  /** What a request would have paid that was served all the time. */
  let partMs = 0;
  const read = (): number => {
    const nowMs = busyMs();
    if (sharers > 0) partMs += (nowMs - readMs) / sharers;
    readMs = nowMs;
    return partMs;
  };
  return {
    begin() {
      const beganMs = read();
      sharers += 1;
      let usedMs: number | undefined;
      return {
        end() {
          if (usedMs !== undefined) return usedMs;
          usedMs = read() - beganMs;
          sharers -= 1;
          return usedMs;
        },
      };
    },
  };
}
