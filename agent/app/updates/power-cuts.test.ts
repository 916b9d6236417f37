/**
 * The power fails at every step of an update, and again at every step after that. Whatever the disk keeps, the next
 * boot has a complete agent, and in the end the machine runs the version it should.
 */
import { createHash } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { answered, scriptedApi } from '../../../test/support/agent-api.ts';
import { CutDisk, SURVIVALS, type Survival } from '../../../test/support/cut-disk.ts';
import { SteppedTime } from '../../../test/support/stepped-time.ts';
import type { UpdateSource } from '../../ports/update-source.ts';
import { InstalledVersions, type Started } from './installed-versions.ts';
import { SelfUpdate } from './self-update.ts';

const PIECES = ['version ', '2.0.0, ', 'complete'];
const NEW = PIECES.join('');
const SHA = createHash('sha256').update(NEW).digest('hex');
const release = { name: 'agent', version: '2.0.0', url: 'https://files.example/a', sha256: SHA, signature: 's' };
const silent = { debug() {}, info() {}, warn() {}, error() {} };
const BOOTS_MAX = 12;

interface Story {
  readonly disk: CutDisk;
  readonly isGood: boolean;
  readonly boots: string[];
}

const source: UpdateSource = {
  async *download() {
    for (const piece of PIECES) yield Buffer.from(piece);
  },
  isSigned: () => true,
  digest() {
    const hash = createHash('sha256');
    return { update: (bytes) => void hash.update(bytes), hex: () => hash.digest('hex') };
  },
  versionOf: async () => '2.0.0',
};

/** One run of the agent, from its start to its end. True if nothing is left to do. */
async function boot({ disk, isGood, boots }: Story): Promise<boolean> {
  const versions = new InstalledVersions(disk.files());
  let started: Started;
  try {
    started = await versions.start();
  } catch {
    boots.push('off');
    return false;
  }
  const content = started.file === '' ? 'installed' : disk.contentOf(started.file);
  // The law: what starts is complete.
  expect(['installed', NEW]).toContain(content);
  const version = content === NEW ? '2.0.0' : '1.0.0';
  boots.push(version);
  if (version === '2.0.0' && !isGood) {
    // It never beats. What a start program does at the end of the trial:
    if (started.trial !== undefined) {
      await versions.rollBack(started.trial, 'no heartbeat', { isDoubtful: true }).catch(() => undefined);
    }
    return false;
  }
  return runAgent(versions, version);
}

async function runAgent(versions: InstalledVersions, version: string): Promise<boolean> {
  const time = new SteppedTime(0);
  const stop = new AbortController();
  const api = scriptedApi(({ body }) => {
    const { failed } = body as { failed?: unknown };
    const action = version === '2.0.0' || failed !== undefined ? 'none' : 'update';
    return answered(200, { kind: 'NodeUpdateAnswer', action, release });
  });
  let restarts = 0;
  const update = new SelfUpdate({
    nodeName: 'n1',
    version,
    architecture: 'amd64',
    periodMs: 1_800_000,
    api,
    versions,
    source,
    time,
    fraction: () => 0.5,
    log: silent,
    recordEvent: () => undefined,
    isShuttingDown: () => false,
    restart: () => {
      restarts += 1;
    },
  });
  const running = update.run(stop.signal);
  update.beat();
  update.beat();
  await update.settled();
  await time.pass(60_000);
  stop.abort();
  await running;
  return restarts === 0 && api.requests.length > 0;
}

/** Boots until nothing is left to do. `cuts`: steps after which the power fails, one per boot. */
async function live(story: Story, cuts: readonly number[], survival: Survival): Promise<void> {
  const left = [...cuts];
  for (let boots = 0; boots < BOOTS_MAX; boots += 1) {
    story.disk.cutAfter(left.shift() ?? Number.POSITIVE_INFINITY);
    const isDone = await boot(story);
    if (story.disk.isOff()) story.disk.powerOn(survival);
    else if (isDone) return;
  }
  throw new Error(`not done after ${BOOTS_MAX} boots: ${story.boots.join(', ')}`);
}

async function outcome(isGood: boolean, cuts: readonly number[], survival: Survival, disk = new CutDisk()) {
  const story = { disk, isGood, boots: [] };
  await live(story, cuts, survival);
  const versions = new InstalledVersions(disk.files());
  const trial = await versions.trial();
  const { file } = await versions.start();
  const failed = await versions.failed();
  expect(failed.filter(({ isDoubtful }) => isDoubtful)).toEqual([]);
  return { trial, file, failed: failed.length, boots: story.boots, names: disk.listed() };
}

/** More than the steps of one boot. */
const STEPS = 24;

describe.each(SURVIVALS)('power cuts after which content and names that were not synced are %s', (survival) => {
  it('end with the new version, if it is good', async () => {
    for (let first = 0; first <= STEPS; first += 1) {
      for (let second = 0; second <= STEPS; second += 1) {
        const ended = await outcome(true, [first, second], survival);
        expect({ first, second, ...ended }).toMatchObject({
          trial: undefined,
          file: `agent-2.0.0-${SHA.slice(0, 16)}.mjs`,
          failed: 0,
        });
      }
    }
  });

  it('end with the version before, and a record, if the new one never beats', async () => {
    for (let first = 0; first <= STEPS; first += 1) {
      for (let second = 0; second <= STEPS; second += 1) {
        const ended = await outcome(false, [first, second], survival);
        expect({ first, second, ...ended }).toMatchObject({ trial: undefined, file: '', failed: 1 });
      }
    }
  });
});

it('has fewer steps than are cut', async () => {
  const disk = new CutDisk();
  await outcome(false, [], 'kept', disk);
  expect(disk.steps).toBeLessThan(2 * STEPS);
  expect(disk.steps).toBeGreaterThan(STEPS);
});

it('notices a file that is not synced before it is named', async () => {
  const run = async (): Promise<void> => {
    for (let first = 0; first <= STEPS; first += 1) {
      await outcome(true, [first], 'torn', new CutDisk((name) => name.endsWith('.mjs')));
    }
  };
  await expect(run()).rejects.toThrow();
});
