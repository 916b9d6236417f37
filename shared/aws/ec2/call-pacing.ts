/**
 * Paces the calls of a pass. The request limits of EC2 apply to the whole account, so other tools share them.
 *
 * - A pass has a few calls under way at one time.
 * - After a throttled call the pass makes no more calls. Its remaining tasks fail as throttled; the next tick follows
 *   soon.
 * - The next pass has half as many calls under way, at least one. Each pass without throttling adds one again.
 *
 * The limit is in memory and lives as long as the process.
 */
import { type Failure, failureOf } from './errors.ts';

export interface Pass {
  /**
   * Makes one call per task. `onFailure` receives each task with a call that failed or was not made. Tasks are
   * independent: a failure affects its own task only, except for throttling.
   */
  callEach<Task>(
    tasks: readonly Task[],
    call: (task: Task) => Promise<void>,
    onFailure: (task: Task, failure: Failure) => void,
  ): Promise<void>;
  /** Sets the limit of the next pass. */
  end(): void;
}

export interface CallPacing {
  startPass(): Pass;
}

const NOT_CALLED: Failure = {
  kind: 'failed',
  cause: 'throttled',
  message: 'EC2: not called, an earlier call of this pass was throttled',
};

export function callPacing(concurrencyMax: number): CallPacing {
  let concurrency = concurrencyMax;
  return {
    startPass() {
      let isThrottled = false;
      let hasCalled = false;
      return {
        async callEach(tasks, call, onFailure) {
          let next = 0;
          const work = async (): Promise<void> => {
            for (let index = next++; index < tasks.length; index = next++) {
              const task = tasks[index]!;
              if (isThrottled) {
                onFailure(task, NOT_CALLED);
                continue;
              }
              hasCalled = true;
              try {
                await call(task);
              } catch (error) {
                const failure = failureOf(error);
                isThrottled ||= failure.cause === 'throttled';
                onFailure(task, failure);
              }
            }
          };
          await Promise.all(Array.from({ length: Math.min(concurrency, tasks.length) }, work));
        },

        end() {
          if (isThrottled) concurrency = Math.max(1, Math.floor(concurrency / 2));
          else if (hasCalled) concurrency = Math.min(concurrencyMax, concurrency + 1);
        },
      };
    },
  };
}
