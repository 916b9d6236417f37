/** A wait that ends early when the local mode stops. */
export interface Pause {
  /** @returns false when it was ended, at once if it was before */
  pause(ms: number): Promise<boolean>;
  end(): void;
  stopped(): boolean;
}

export function createPause(): Pause {
  let isStopped = false;
  const sleepers = new Set<() => void>();
  return {
    stopped: () => isStopped,
    pause(ms) {
      if (isStopped) return Promise.resolve(false);
      return new Promise((resolve) => {
        const wake = () => {
          clearTimeout(timer);
          sleepers.delete(wake);
          resolve(!isStopped);
        };
        const timer = setTimeout(wake, ms);
        sleepers.add(wake);
      });
    },
    end() {
      isStopped = true;
      for (const wake of [...sleepers]) wake();
    },
  };
}
