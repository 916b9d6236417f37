import { describe, expect, it } from 'vitest';
import { defaultPolicy } from '../../shared/fleet/policy.ts';
import { type CloudHistory, runCloudHistory } from './cloud-histories.ts';

const HISTORIES = 300;
const FIRST_SEED = 500_001;

async function historiesOf(count: number, policy = defaultPolicy): Promise<CloudHistory[]> {
  const histories: CloudHistory[] = [];
  for (let seed = FIRST_SEED; seed < FIRST_SEED + count; seed += 1) histories.push(await runCloudHistory(seed, policy));
  return histories;
}

describe('over random histories of EC2 instances', () => {
  it('no living Node is deleted, and that of a terminated instance is deleted within two periods of the event or three polls', async () => {
    const histories = await historiesOf(HISTORIES);
    expect(histories.filter(({ liveDeleted, late }) => liveDeleted.length + late.length > 0)).toEqual([]);
    // The histories cover the cases: many instances terminate, some stop, some Nodes are deleted by polls and some by
    // events.
    const polls = histories.flatMap(({ pollsToGo }) => pollsToGo);
    expect(histories.reduce((sum, { deleted }) => sum + deleted, 0)).toBeGreaterThan(HISTORIES);
    expect(histories.some(({ shutdownTaints }) => shutdownTaints > 0)).toBe(true);
    expect(polls).toContain(0);
    expect(polls).toContain(1);
  }, 120_000);

  it('an instance overlooked before and after an outage of ours is not unknown twice in a row (seed 28328)', async () => {
    expect((await runCloudHistory(28_328, defaultPolicy)).liveDeleted).toEqual([]);
  });

  it('a policy that trusts EC2 about young instances is caught deleting living ones', async () => {
    const histories = await historiesOf(60, { ...defaultPolicy, cloudYoungInstanceSeconds: 0 });
    expect(histories.flatMap(({ liveDeleted }) => liveDeleted).length).toBeGreaterThan(0);
  }, 60_000);
});
