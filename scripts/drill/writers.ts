/** Clients that write without a pause of the cluster's own: each creates, changes and deletes objects of its own. */
import { setTimeout as pause } from 'node:timers/promises';
import type { ApiRequest, SendRequest } from '../../demo/fleet/api-client.ts';
import type { AcknowledgedWrites, Written } from './acknowledged-writes.ts';
import { CONFIG_MAPS } from './workloads.ts';

const WRITERS = 4;
const PAUSE_MS = 250;

export interface Writers {
  stop(): Promise<void>;
}

export function startWriters(send: SendRequest, writes: AcknowledgedWrites): Writers {
  let isStopped = false;

  /** False: the cluster did not acknowledge it. It may be stored or not. */
  async function write(path: string, written: Written, request: ApiRequest): Promise<boolean> {
    const acknowledge = writes.sent(path, written);
    const answer = await send(request);
    const isAcknowledged = answer.kind === 'answered' && answer.status < 300;
    if (isAcknowledged) acknowledge();
    await pause(PAUSE_MS);
    return isAcknowledged && !isStopped;
  }

  async function run(writer: number): Promise<void> {
    for (let number = 0; !isStopped; number += 1) {
      const name = `writer-${writer}-${number}`;
      const path = `${CONFIG_MAPS}/${name}`;
      const body = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name }, data: { round: '0' } };
      const change = { data: { round: '1' } };
      const contentType = 'application/merge-patch+json';
      const isLeft =
        (await write(path, '0', { method: 'POST', path: CONFIG_MAPS, body })) &&
        (await write(path, '1', { method: 'PATCH', path, body: change, contentType }));
      // After an unanswered write the object is left as it is: another write would hide what became of the first.
      if (isLeft && number % 3 === 0) await write(path, 'absent', { method: 'DELETE', path });
    }
  }

  const running = Promise.all(Array.from({ length: WRITERS }, (_, writer) => run(writer)));
  return {
    async stop() {
      isStopped = true;
      await running;
    },
  };
}
