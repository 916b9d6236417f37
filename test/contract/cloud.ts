/** Contract of the Cloud port. It runs on the cloud in memory, and with the SDK on a loopback EC2. */
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { CloudWorld } from '../../demo/ec2/cloud-world.ts';
import type { Cloud, InstanceAnswer } from '../../shared/fleet/instances/cloud.ts';
import { CLUSTER_TAG } from '../../shared/fleet/instances/cluster-tag.ts';
import type { InstanceState } from '../../shared/fleet/instances/instance.ts';
import type { Ec2Instance } from '../../shared/fleet/instances/provider-id.ts';

export interface CloudUnderTest {
  readonly cloud: Cloud;
  readonly world: CloudWorld;
  /**
   * Makes calls fail: after `after` successful ones the next `calls`, by default every call. Null ends the failures.
   */
  fail(
    trouble: 'Throttling' | 'RequestLimitExceeded' | 'InternalError' | 'timeout' | null,
    options?: { readonly calls?: number; readonly after?: number },
  ): void;
  setAnswerDelay(answerDelayMs: number): void;
  /** Calls of DescribeInstances so far. */
  describeCalls(): number;
  close(): Promise<void>;
}

export interface CloudSetting {
  readonly region: string;
  readonly accountId: string;
  readonly clusterId: string;
  nowMs(): number;
}

const T0 = 1_795_200_000_000;
const HOUR_MS = 3_600_000;
const ZONE = 'us-east-1a';

const isFailed = ({ answer }: InstanceAnswer, cause: string): boolean =>
  answer.kind === 'failed' && answer.cause === cause;
const instanceId = (index: number): string => `i-${index.toString(16).padStart(17, '0')}`;
const volumeId = (index: number): string => `vol-${index.toString(16).padStart(17, '0')}`;
const named = (id: string, zone: string | undefined = ZONE): Ec2Instance => ({
  instanceId: id,
  zone,
  region: zone?.slice(0, -1),
});

export function defineCloudContract(name: string, open: (setting: CloudSetting) => Promise<CloudUnderTest>): void {
  describe(`cloud: ${name}`, () => {
    let nowMs = T0;
    let under: CloudUnderTest;
    let cloud: Cloud;
    let world: CloudWorld;
    let used = 0;
    beforeAll(async () => {
      under = await open({ region: 'us-east-1', accountId: '000000000000', clusterId: 'edge', nowMs: () => nowMs });
      ({ cloud, world } = under);
    });
    afterAll(async () => {
      await under?.close();
    });
    beforeEach(() => {
      nowMs = T0;
      under.fail(null);
      under.setAnswerDelay(0);
    });

    const newInstance = (state: InstanceState = 'running', launchedAtMs = T0 - HOUR_MS): string => {
      used += 1;
      const id = instanceId(used);
      world.put({ instanceId: id, zone: ZONE, instanceType: 'm7g.large', launchedAtMs, state });
      return id;
    };
    const newVolume = (tags: Record<string, string> = { [CLUSTER_TAG]: 'edge' }): string => {
      used += 1;
      const id = volumeId(used);
      world.putVolume({ volumeId: id, zone: ZONE, tags });
      return id;
    };
    const answerTo = async (id: string) => (await cloud.describeInstances([named(id)])).get(id);
    const kindOf = async (id: string) => (await answerTo(id))?.answer.kind;
    const volume = async (id: string) => (await cloud.describeVolumes([id])).get(id);

    describe('instances', () => {
      it.each(['pending', 'running', 'stopping', 'stopped', 'shutting-down', 'terminated'] as const)(
        'returns state and launch time of a %s instance',
        async (state) => {
          nowMs = T0 - HOUR_MS - 1;
          const id = newInstance(state, T0 - HOUR_MS);
          // A pending instance of a world without delays runs at once.
          nowMs = T0;
          const returned = state === 'pending' ? 'running' : state;
          expect((await answerTo(id))?.answer).toEqual({ kind: 'found', state: returned, launchedAtMs: T0 - HOUR_MS });
        },
      );

      it('returns the metadata of a Node, with ordered addresses', async () => {
        used += 1;
        const id = instanceId(used);
        const addresses = [
          { type: 'InternalIP', address: '10.0.0.10' },
          { type: 'InternalIP', address: '10.0.0.11' },
          { type: 'InternalIP', address: '2001:db8::10' },
          { type: 'ExternalIP', address: '203.0.113.10' },
          { type: 'InternalDNS', address: 'ip-10-0-0-10.ec2.internal' },
          { type: 'Hostname', address: 'ip-10-0-0-10.ec2.internal' },
          { type: 'ExternalDNS', address: 'ec2-203-0-113-10.compute-1.amazonaws.com' },
        ];
        world.put({ instanceId: id, zone: 'us-east-1b', instanceType: 'm7g.large', launchedAtMs: T0, addresses });
        expect((await answerTo(id))?.metadata).toEqual({
          instanceType: 'm7g.large',
          zone: 'us-east-1b',
          region: 'us-east-1',
          addresses,
          additionalLabels: {},
        });
      });

      it('returns no metadata of a terminated instance', async () => {
        const id = newInstance('terminated');
        expect(await answerTo(id)).not.toHaveProperty('metadata');
      });

      it('answers every id once, known or not; an unknown id affects no other', async () => {
        const known = newInstance();
        const unknown = 'i-00000000deadbeef0';
        const answers = await cloud.describeInstances([
          named(known),
          named(unknown),
          named(known),
          named(known, undefined),
        ]);
        expect([...answers.keys()].toSorted()).toEqual([known, unknown].toSorted());
        expect(answers.get(known)?.answer.kind).toBe('found');
        expect(answers.get(unknown)?.answer).toEqual({ kind: 'notFound' });
      });

      it('makes no call without ids, or for another region', async () => {
        const before = under.describeCalls();
        expect((await cloud.describeInstances([])).size).toBe(0);
        const id = newInstance();
        const answers = await cloud.describeInstances([named(id, 'eu-west-1a')]);
        expect(answers.get(id)?.answer).toMatchObject({ kind: 'foreign' });
        expect(under.describeCalls()).toBe(before);
      });

      it('returns notFound for a vanished instance, and an hour after a termination', async () => {
        const vanished = newInstance();
        world.vanish(vanished);
        expect(await kindOf(vanished)).toBe('notFound');
        world.start(vanished);
        expect(await kindOf(vanished)).toBe('found');
        const terminated = newInstance();
        world.terminate(terminated);
        nowMs = T0 + HOUR_MS - 1;
        expect(await kindOf(terminated)).toBe('found');
        nowMs = T0 + HOUR_MS;
        expect(await kindOf(terminated)).toBe('notFound');
      });

      it('returns foreign, not notFound, for an instance of another account, with the reason', async () => {
        const [others, terminated, unknown] = [newInstance(), newInstance(), 'i-00000000deadbeef1'];
        for (const [id, state] of [
          [others, 'running'],
          [terminated, 'terminated'],
        ] as const) {
          world.put({
            instanceId: id,
            zone: ZONE,
            instanceType: 'm7g.large',
            launchedAtMs: T0 - HOUR_MS,
            state,
            accountId: '999999999999',
          });
        }
        for (let pass = 0; pass < 3; pass += 1) {
          const answers = await cloud.describeInstances([others, terminated, unknown].map((id) => named(id)));
          for (const id of [others, terminated]) {
            expect(answers.get(id)).toEqual({
              answer: {
                kind: 'foreign',
                reason: `EC2 accepts the id ${id} and does not return the instance: it is another account's instance`,
              },
            });
          }
          expect(answers.get(unknown)?.answer).toEqual({ kind: 'notFound' });
        }
      });

      it('makes one call for all instances, and one more for each missing one', async () => {
        const ids = Array.from({ length: 20 }, () => newInstance());
        const pass = async () => {
          const before = under.describeCalls();
          await cloud.describeInstances(ids.map((id) => named(id)));
          return under.describeCalls() - before;
        };
        expect(await pass()).toBe(1);
        for (const id of ids.slice(0, 3)) world.vanish(id);
        expect([await pass(), await pass()]).toEqual([4, 4]);
      });

      it('confirms 20 missing instances per pass, the same in three passes, and fails the others', async () => {
        const ids = Array.from({ length: 45 }, () => newInstance());
        for (const id of ids) world.vanish(id);
        const pass = async () => {
          const before = under.describeCalls();
          const answers = await cloud.describeInstances(ids.map((id) => named(id)));
          const confirmed = ids.filter((id) => answers.get(id)?.answer.kind === 'notFound');
          for (const id of ids.filter((one) => !confirmed.includes(one))) {
            expect(answers.get(id)?.answer).toMatchObject({
              kind: 'failed',
              cause: 'throttled',
              message: expect.stringContaining('a later pass requests this one'),
            });
          }
          return { confirmed, calls: under.describeCalls() - before };
        };
        const first = await pass();
        expect(first.confirmed).toHaveLength(20);
        expect(first.calls).toBe(1 + 20);
        for (let more = 0; more < 2; more += 1) expect((await pass()).confirmed).toEqual(first.confirmed);
        const next = await pass();
        expect(next.confirmed).toHaveLength(20);
        expect(next.confirmed.filter((id) => first.confirmed.includes(id))).toEqual([]);
      });

      it('may return an earlier state, without a young instance', async () => {
        const old = newInstance();
        const young = newInstance('running', T0);
        world.stop(old);
        under.setAnswerDelay(5_000);
        expect(await kindOf(young)).toBe('notFound');
        expect((await answerTo(old))?.answer).toMatchObject({ state: 'running' });
        nowMs = T0 + 5_000;
        expect((await answerTo(young))?.answer).toMatchObject({ kind: 'found', state: 'running' });
        expect((await answerTo(old))?.answer).toMatchObject({ state: 'stopped' });
      });
    });

    describe('failing calls', () => {
      it.each([
        ['Throttling', 'throttled'],
        ['RequestLimitExceeded', 'throttled'],
        ['InternalError', 'error'],
        ['timeout', 'timeout'],
      ] as const)('return failed, not notFound, after %s', async (trouble, cause) => {
        const [known, unknown] = [newInstance(), 'i-00000000deadbeef0'];
        const disk = newVolume();
        world.attachVolume(disk, { instanceId: known });
        under.fail(trouble);
        const answers = await cloud.describeInstances([named(known), named(unknown)]);
        for (const id of [known, unknown]) {
          expect(answers.get(id)?.answer).toMatchObject({ kind: 'failed', cause });
          expect(answers.get(id)).not.toHaveProperty('metadata');
        }
        expect(await volume(disk)).toMatchObject({ kind: 'failed', cause });
        expect(await cloud.detachVolume({ volumeId: disk, instanceId: known, force: false })).toMatchObject({
          kind: 'failed',
          cause,
        });
        under.fail(null);
        expect(await kindOf(known)).toBe('found');
        expect(world.volume(disk, nowMs)?.attachments).toHaveLength(1);
      });

      it('fail the ids of the failed call, and no others', async () => {
        const ids = Array.from({ length: 450 }, () => newInstance());
        const before = under.describeCalls();
        under.fail('InternalError', { calls: 1 });
        const answers = await cloud.describeInstances(ids.map((id) => named(id)));
        expect(answers.size).toBe(450);
        // On a busy machine another call may take too long.
        const failed = ids.filter((id) => isFailed(answers.get(id)!, 'error'));
        const late = ids.filter((id) => isFailed(answers.get(id)!, 'timeout'));
        expect([50, 200]).toContain(failed.length);
        const found = ids.filter((id) => answers.get(id)?.answer.kind === 'found');
        expect(found).toHaveLength(450 - failed.length - late.length);
        expect(under.describeCalls()).toBeGreaterThanOrEqual(before + 3);
      });

      it('return failed, not notFound, after a failed call by id', async () => {
        const vanished = newInstance();
        world.vanish(vanished);
        expect(await kindOf(vanished)).toBe('notFound');
        for (const [trouble, cause] of [
          ['InternalError', 'error'],
          ['RequestLimitExceeded', 'throttled'],
          ['timeout', 'timeout'],
        ] as const) {
          under.fail(trouble, { after: 1 });
          expect((await answerTo(vanished))?.answer).toMatchObject({ kind: 'failed', cause });
          under.fail(null);
        }
        expect(await kindOf(vanished)).toBe('notFound');
      });

      it('end the calls of a throttled pass', async () => {
        const ids = Array.from({ length: 4_000 }, (_, index) => instanceId(1_000_000 + index));
        const before = under.describeCalls();
        under.fail('RequestLimitExceeded');
        const answers = await cloud.describeInstances(ids.map((id) => named(id)));
        expect(answers.size).toBe(4_000);
        for (const { answer } of answers.values()) expect(answer).toMatchObject({ kind: 'failed', cause: 'throttled' });
        expect(under.describeCalls() - before).toBeLessThanOrEqual(4);
      });
    });

    describe('volumes', () => {
      it('have their cluster tag and attachments', async () => {
        const node = newInstance();
        const [data, root, managed, others] = [
          newVolume(),
          newVolume(),
          newVolume(),
          newVolume({ [CLUSTER_TAG]: 'x' }),
        ];
        world.attachVolume(data, { instanceId: node });
        world.attachVolume(root, { instanceId: node, isRootDevice: true });
        world.attachVolume(managed, { instanceId: node, managedByAws: true, device: '/dev/xvdg' });
        const answers = await cloud.describeVolumes([data, root, managed, others, data, 'vol-00000000deadbeef0']);
        const attachment = { instanceId: node, state: 'attached', isRootDevice: false, managedByAws: false };
        expect(Object.fromEntries(answers)).toEqual({
          [data]: { kind: 'found', tagged: true, attachments: [attachment] },
          [root]: { kind: 'found', tagged: true, attachments: [{ ...attachment, isRootDevice: true }] },
          [managed]: { kind: 'found', tagged: true, attachments: [{ ...attachment, managedByAws: true }] },
          [others]: { kind: 'found', tagged: false, attachments: [] },
          'vol-00000000deadbeef0': { kind: 'notFound' },
        });
        expect((await cloud.describeVolumes([])).size).toBe(0);
      });

      it('are detached; the answer is notAttached if there is nothing to detach', async () => {
        const [node, other] = [newInstance(), newInstance()];
        const data = newVolume();
        const detach = (from: string, id = data) =>
          cloud.detachVolume({ volumeId: id, instanceId: from, force: false });
        expect(await detach(node)).toEqual({ kind: 'notAttached' });
        world.attachVolume(data, { instanceId: node });
        expect(await detach(other)).toEqual({ kind: 'notAttached' });
        expect(await detach(node)).toEqual({ kind: 'detaching' });
        expect(await volume(data)).toMatchObject({ attachments: [] });
        expect(await detach(node, 'vol-00000000deadbeef0')).toEqual({ kind: 'notAttached' });
      });

      it('stay busy while mounted, unless forced', async () => {
        const node = newInstance();
        const data = newVolume();
        world.attachVolume(data, { instanceId: node, mounted: true });
        await cloud.detachVolume({ volumeId: data, instanceId: node, force: false });
        expect(await volume(data)).toMatchObject({ attachments: [{ instanceId: node, state: 'busy' }] });
        await cloud.detachVolume({ volumeId: data, instanceId: node, force: true });
        expect(await volume(data)).toMatchObject({ attachments: [] });
      });

      it('are refused if EC2 never detaches them', async () => {
        const node = newInstance();
        const [root, managed] = [newVolume(), newVolume()];
        world.attachVolume(root, { instanceId: node, isRootDevice: true });
        world.attachVolume(managed, { instanceId: node, managedByAws: true });
        const detach = (id: string) => cloud.detachVolume({ volumeId: id, instanceId: node, force: true });
        expect(await detach(root)).toMatchObject({ kind: 'refused', code: 'OperationNotPermitted' });
        expect(await detach(managed)).toMatchObject({ kind: 'refused', code: 'UnsupportedOperation' });
      });
    });
  });
}
