import { beforeEach, describe, expect, it } from 'vitest';
import type { LeaseBatch } from '../../shared/fleet/nodes/lease-batch.ts';
import { SteppedTime } from '../../test/support/stepped-time.ts';
import type { ApiAnswer, ApiRequest } from './api-client.ts';
import { ZoneRelay } from './relay.ts';

const LEASES = '/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases';
const renewal = (name: string): ApiRequest => ({ method: 'PUT', path: `${LEASES}/${name}`, body: { name } });

let time: SteppedTime;
let sent: string[];
let batchAnswer: (batch: LeaseBatch) => ApiAnswer;
let relay: ZoneRelay;

const accepts = ({ items }: LeaseBatch): ApiAnswer => ({
  kind: 'answered',
  status: 200,
  body: { kind: 'LeaseBatch', items: items.map(() => ({ status: 200, body: { kind: 'Lease' } })) },
});

beforeEach(() => {
  time = new SteppedTime(0);
  sent = [];
  batchAnswer = accepts;
  const timers = new Map<object, AbortController>();
  relay = new ZoneRelay({
    token: 'fleet',
    clock: time,
    timers: {
      set(callback, delayMs) {
        const [handle, cancelled] = [{}, new AbortController()];
        timers.set(handle, cancelled);
        void time.sleep(delayMs, cancelled.signal).then(() => {
          if (!cancelled.signal.aborted) callback();
        });
        return handle;
      },
      clear: (handle) => timers.get(handle as object)?.abort(),
    },
    async send({ method, path, body }) {
      if (method === 'POST') {
        const batch = body as LeaseBatch;
        sent.push(`batch of ${batch.items.length}`);
        return batchAnswer(batch);
      }
      sent.push(`${method} ${path.split('/').at(-1)}`);
      return { kind: 'answered', status: 200, body: {} };
    },
  });
});

async function beat(...names: readonly string[]): Promise<readonly string[]> {
  sent = [];
  const answers = names.map((name) => relay.send(renewal(name)));
  await time.pass(2_000);
  for (const answer of await Promise.all(answers)) expect(answer).toMatchObject({ status: 200 });
  return sent;
}

describe('the relay of a zone of the fleet', () => {
  it('sends the heartbeats of two seconds in one request, and other requests directly', async () => {
    expect(await beat('edge-a-0', 'edge-a-1', 'edge-a-2')).toEqual(['batch of 3']);
    await relay.send({ method: 'GET', path: '/api/v1/nodes/edge-a-0' });
    await relay.send({ method: 'POST', path: LEASES, body: { items: [] } });
    expect(sent.slice(1)).toEqual(['GET edge-a-0', 'batch of 0']);
  });

  it('that is killed delays no heartbeat, and is used again a minute after its start', async () => {
    const waiting = relay.send(renewal('edge-a-0'));
    relay.kill();
    expect(await waiting).toMatchObject({ status: 200 });
    expect(sent).toEqual(['PUT edge-a-0']);
    expect(await beat('edge-a-0', 'edge-a-1')).toEqual(['PUT edge-a-0', 'PUT edge-a-1']);
    relay.start();
    expect(relay.isUsedBy('edge-a-1')).toBe(false);
    expect(await beat('edge-a-1')).toEqual(['PUT edge-a-1']);
    await time.pass(60_000);
    expect(relay.isUsedBy('edge-a-1')).toBe(true);
    expect(await beat('edge-a-1')).toEqual(['batch of 1']);
  });

  it.each<[string, ApiAnswer]>([
    ['is not answered', { kind: 'failed', cause: new Error('refused') }],
    ['is answered 404', { kind: 'answered', status: 404, body: {} }],
    [
      'is answered for another number of machines',
      { kind: 'answered', status: 200, body: { kind: 'LeaseBatch', items: [] } },
    ],
  ])('has machines that send directly if a batch %s', async (_, answer) => {
    batchAnswer = () => answer;
    expect(await beat('edge-a-0', 'edge-a-1')).toEqual(['batch of 2', 'PUT edge-a-0', 'PUT edge-a-1']);
  });
});
