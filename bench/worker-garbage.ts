/** Collects the garbage of every worker thread of this process: their heaps then contain used memory only. */
import { Session } from 'node:inspector/promises';

const ANSWER_LIMIT_MS = 5_000;

export interface WorkerGarbage {
  /** Resolves once each worker has collected, has ended, or has not answered for five seconds. */
  collect(): Promise<void>;
}

/** Uses the inspector's protocol: the workers need no code for it. */
export async function openWorkerGarbage(): Promise<WorkerGarbage> {
  const session = new Session();
  session.connect();
  const collected = new Map<string, () => void>();
  const workers = new Set<string>();
  const answered = (sessionId: string): void => collected.get(sessionId)?.();
  session.on('NodeWorker.attachedToWorker', ({ params }) => workers.add(params.sessionId));
  session.on('NodeWorker.receivedMessageFromWorker', ({ params }) => answered(params.sessionId));
  session.on('NodeWorker.detachedFromWorker', ({ params }) => {
    workers.delete(params.sessionId);
    answered(params.sessionId);
  });
  await session.post('NodeWorker.enable', { waitForDebuggerOnStart: false });
  const message = JSON.stringify({ id: 1, method: 'HeapProfiler.collectGarbage' });

  async function collectOf(sessionId: string): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    const timer = setTimeout(resolve, ANSWER_LIMIT_MS);
    collected.set(sessionId, resolve);
    // The worker may end before it receives the request.
    session.post('NodeWorker.sendMessageToWorker', { sessionId, message }).catch(resolve);
    await promise;
    clearTimeout(timer);
    collected.delete(sessionId);
  }

  return {
    async collect() {
      // One at a time: beats are answered meanwhile.
      for (const sessionId of [...workers]) await collectOf(sessionId);
    },
  };
}
