import { describe, expect, it } from 'vitest';
import { type MemoryCloudOptions, memoryCloud } from './cloud.ts';

const T0 = 1_795_200_000_000;
const ID = 'i-0123456789abcdef0';

function aCloud(options: Partial<MemoryCloudOptions> = {}) {
  let nowMs = T0;
  const cloud = memoryCloud({
    clock: { nowMs: () => nowMs },
    region: 'us-east-1',
    accountId: '000000000000',
    ...options,
  });
  cloud.put({ instanceId: ID, zone: 'us-east-1a', instanceType: 'm7g.large', launchedAtMs: T0 - 3_600_000 });
  const stateOf = async (id = ID): Promise<string> => {
    const answers = await cloud.describeInstances([{ instanceId: id, zone: undefined, region: undefined }]);
    const answer = answers.get(id)?.answer;
    return answer?.kind === 'found' ? answer.state : (answer?.kind ?? 'none');
  };
  return {
    cloud,
    stateOf,
    at(afterMs: number) {
      nowMs = T0 + afterMs;
    },
  };
}

describe('memoryCloud', () => {
  it('stays in stopping and shutting-down for the configured time', async () => {
    const { cloud, stateOf, at } = aCloud({ stoppingMs: 30_000, shuttingDownMs: 20_000 });
    cloud.stop(ID);
    expect(await stateOf()).toBe('stopping');
    at(30_000);
    expect(await stateOf()).toBe('stopped');
    cloud.terminate(ID);
    expect(await stateOf()).toBe('shutting-down');
    at(50_000);
    expect(await stateOf()).toBe('terminated');
    at(50_000 + 3_600_000);
    expect(await stateOf()).toBe('notFound');
  });

  it('does not return an instance that is younger than the delay of answers', async () => {
    const { cloud, stateOf, at } = aCloud({ answerDelayMs: 10_000 });
    const young = 'i-0123456789abcdef1';
    cloud.put({ instanceId: young, zone: 'us-east-1a', instanceType: 'm7g.large', launchedAtMs: T0 });
    cloud.terminate(ID);
    expect(await stateOf(young)).toBe('notFound');
    expect(await stateOf()).toBe('running');
    at(10_000);
    expect(await stateOf(young)).toBe('running');
    expect(await stateOf()).toBe('terminated');
  });

  it('restores a vanished instance unchanged, and launches a stopped one again', async () => {
    const { cloud, stateOf, at } = aCloud();
    cloud.vanish(ID);
    expect(await stateOf()).toBe('notFound');
    expect(cloud.stop(ID)).toBe('unknown');
    cloud.start(ID);
    expect(cloud.world.instance(ID, T0)?.launchedAtMs).toBe(T0 - 3_600_000);
    at(1);
    cloud.stop(ID);
    cloud.start(ID);
    expect(cloud.world.instance(ID, T0 + 1)).toMatchObject({ state: 'running', launchedAtMs: T0 + 1 });
    cloud.terminate(ID);
    expect(cloud.start(ID)).toBe('incorrectState');
  });

  it('reports each state change once, in order, when it is due', () => {
    const { cloud, at } = aCloud({ stoppingMs: 5_000 });
    expect(cloud.takeStateChanges()).toEqual([]);
    cloud.stop(ID);
    expect(cloud.takeStateChanges()).toEqual([{ instanceId: ID, state: 'stopping', atMs: T0 }]);
    expect(cloud.world.nextChangeAtMs()).toBe(T0 + 5_000);
    at(6_000);
    cloud.terminate(ID);
    expect(cloud.takeStateChanges().map(({ state }) => state)).toEqual(['stopped', 'shutting-down', 'terminated']);
    expect(cloud.takeStateChanges()).toEqual([]);
  });

  it('names the time of a change until it is reported, also when it became due since the last report', () => {
    const { cloud, at } = aCloud({ stoppingMs: 5_000 });
    cloud.stop(ID);
    cloud.takeStateChanges();
    at(5_000);
    expect(cloud.world.nextChangeAtMs()).toBe(T0 + 5_000);
    expect(cloud.takeStateChanges().map(({ state }) => state)).toEqual(['stopped']);
    expect(cloud.world.nextChangeAtMs()).toBeUndefined();
  });

  it('continues from a restored state without reporting earlier changes', async () => {
    const { cloud, at } = aCloud({ stoppingMs: 5_000 });
    cloud.stop(ID);
    const kept = JSON.parse(JSON.stringify(cloud.world.state()));
    at(1_000);
    const { cloud: next, at: nextAt } = aCloud({ stoppingMs: 5_000 });
    next.world.restore(kept);
    expect(next.takeStateChanges()).toEqual([]);
    nextAt(5_000);
    expect(next.takeStateChanges().map(({ state }) => state)).toEqual(['stopped']);
  });
});
