import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { startEventServer } from '../../aws-local/event-bus/event-server.ts';
import { eventBridgeBus, eventBusConnectionFrom } from '../../shared/aws/event-bus.ts';
import type { ClusterEvent } from '../../shared/events/cluster-event.ts';
import { listenOnLoopback } from '../../shared/host/loopback.ts';
import { eventFaults } from '../support/event-schemas.ts';

const environment = { AWS_REGION: 'eu-west-1', AWS_ACCESS_KEY_ID: 'AKID', AWS_SECRET_ACCESS_KEY: 'secret' };
const NOW_MS = Date.UTC(2026, 0, 1);
const node = { name: 'n1', uid: 'u1', zone: 'a' };
const ready = (uid: string): ClusterEvent => ({ type: 'NodeReady', id: `NodeReady/${uid}/1`, node: { ...node, uid } });
const busAt = (endpoint: string) =>
  eventBridgeBus(
    eventBusConnectionFrom({ ...environment, AWS_ENDPOINT_URL_EVENTBRIDGE: endpoint }, 'edge-events'),
    'edge',
  );

interface Call {
  readonly target: string;
  readonly entries: readonly { readonly DetailType: string; readonly EventBusName: string; readonly Detail: string }[];
}

/** Answers by the number of the call; what it returns is the body of a 200, a number another status. */
async function answering(answerOf: (call: Call, number: number) => object | number) {
  const calls: Call[] = [];
  const server = createServer(async (request, response) => {
    let body = '';
    for await (const part of request) body += String(part);
    const { Entries: entries } = JSON.parse(body) as { Entries: Call['entries'] };
    const call = { target: String(request.headers['x-amz-target']), entries };
    calls.push(call);
    const answer = answerOf(call, calls.length);
    response.writeHead(typeof answer === 'number' ? answer : 200).end(JSON.stringify(answer));
  });
  const port = await listenOnLoopback(server);
  const stop = (): void => {
    server.closeAllConnections();
    server.close();
  };
  onTestFinished(stop);
  return { endpoint: `http://127.0.0.1:${port}`, calls, stop };
}
const taken = ({ entries }: Call) => ({ FailedEntryCount: 0, Entries: entries.map(() => ({ EventId: 'e' })) });

describe('the event bus in EventBridge', () => {
  it('sends events that fit their schemas, as a rule gets them', async () => {
    const directory = mkdtempSync(join(tmpdir(), 'events-'));
    const file = join(directory, 'events.jsonl');
    const server = await startEventServer({ file, region: 'eu-west-1', accountId: '111122223333' });
    onTestFinished(async () => {
      await server.stop();
      rmSync(directory, { recursive: true });
    });
    const zone = { zone: 'a', nodes: 9, notReady: 6 };
    const events: ClusterEvent[] = [
      ready('u1'),
      { type: 'NodeNotReady', id: 'NodeNotReady/u1/2', node, ready: 'Unknown', reason: 'NodeStatusUnknown' },
      { type: 'NodeDeleted', id: 'NodeDeleted/u1', node: { ...node, zone: '' } },
      {
        type: 'PodEvicted',
        id: 'PodEvicted/p1/DeletionByTaintManager',
        pod: { namespace: 'default', name: 'p', uid: 'p1' },
        nodeName: 'n1',
        reason: 'DeletionByTaintManager',
      },
      { type: 'ZoneDisrupted', id: 'ZoneDisrupted/a/PartialDisruption/5', state: 'PartialDisruption', ...zone },
      { type: 'ZoneRecovered', id: 'ZoneRecovered/a/Normal/6', state: 'Normal', ...zone },
      { type: 'GateClosed', id: 'GateClosed/7', reasons: ['failingPath'] },
      { type: 'GateOpened', id: 'GateOpened/8', freshSince: '2026-01-01T00:00:00Z' },
    ];
    expect(await busAt(server.endpoint).publish(events, NOW_MS)).toEqual({ failed: [] });
    const got = readFileSync(file, 'utf8')
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as Record<string, unknown>);
    expect(got.map((event) => event['detail-type'])).toEqual(events.map(({ type }) => type));
    for (const event of got) expect(eventFaults(event)).toEqual([]);
    expect(got[0]).toMatchObject({
      source: 'nodekeeper',
      time: '2026-01-01T00:00:00Z',
      region: 'eu-west-1',
      detail: { version: 1, id: 'NodeReady/u1/1', cluster: 'edge', time: '2026-01-01T00:00:00Z', node },
    });
    const large = [ready('u'.repeat(262_144))];
    const reason = 'PutEvents returned status 400';
    expect(await busAt(server.endpoint).publish(large, NOW_MS)).toEqual({ failed: large, reason });
  });

  it('sends ten a call, to its own bus', async () => {
    const server = await answering(taken);
    const events = Array.from({ length: 25 }, (_, index) => ready(`u${index}`));
    expect(await busAt(server.endpoint).publish(events, NOW_MS)).toEqual({ failed: [] });
    expect(server.calls.map(({ entries }) => entries.length).sort()).toEqual([10, 10, 5]);
    for (const { target, entries } of server.calls) {
      expect(target).toBe('AWSEvents.PutEvents');
      for (const { EventBusName: bus } of entries) expect(bus).toBe('edge-events');
    }
    expect(await busAt(server.endpoint).publish([], NOW_MS)).toEqual({ failed: [] });
    expect(server.calls).toHaveLength(3);
  });

  it('sends again only what was refused, and gives up after two tries', async () => {
    const throttled = { ErrorCode: 'ThrottlingException', ErrorMessage: 'slow down' };
    const once = await answering((call, number) =>
      number === 1 ? { FailedEntryCount: 1, Entries: [{ EventId: 'e' }, throttled] } : taken(call),
    );
    expect(await busAt(once.endpoint).publish([ready('u1'), ready('u2')], NOW_MS)).toEqual({ failed: [] });
    expect(once.calls.map(({ entries }) => entries.length)).toEqual([2, 1]);
    const never = await answering(({ entries }) => ({ Entries: entries.map(() => throttled) }));
    const outcome = await busAt(never.endpoint).publish([ready('u1')], NOW_MS);
    expect(outcome).toEqual({ failed: [ready('u1')], reason: 'ThrottlingException: slow down' });
    expect(never.calls).toHaveLength(2);
  });

  it('says what failed, and never rejects, whatever is answered', async () => {
    const broken = await answering(() => 500);
    expect(await busAt(broken.endpoint).publish([ready('u1')], NOW_MS)).toEqual({
      failed: [ready('u1')],
      reason: 'PutEvents returned status 500',
    });
    broken.stop();
    const gone = await busAt(broken.endpoint).publish([ready('u1')], NOW_MS);
    expect(gone.failed).toHaveLength(1);
    expect(gone.reason).toContain('no response to PutEvents');
  });

  it('names every variable that is missing', () => {
    expect(() => eventBusConnectionFrom({ AWS_REGION: 'eu-west-1' }, 'bus')).toThrow(
      'AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY',
    );
  });
});
