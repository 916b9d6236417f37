/** What the agent keeps in files, on a disk with calls that fail. A scenario runs once for each call that it makes. */
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { KeyFileError, machineKey, presentMachineKey } from '../../agent/adapters/identity/key-file.ts';
import { boundLog } from '../../agent/adapters/runtime-exec/log-file.ts';
import { stateFile } from '../../agent/adapters/system/state-file.ts';
import { stateGenerations } from '../../agent/adapters/system/state-generations.ts';
import { updateFiles } from '../../agent/adapters/updates/update-files.ts';
import { PodMemory } from '../../agent/app/pods/pod-memory.ts';
import { InstalledVersions } from '../../agent/app/updates/installed-versions.ts';
import { trialOutcome } from '../../agent/app/updates/trial-watch.ts';
import { silentLog } from '../support/agent-api.ts';
import { DISK_FAULTS, type DiskFault, diskFaults, eachCall, LINK_FAULTS } from '../support/disk-faults.ts';

vi.mock('node:fs', async (original) => (await import('../support/disk-faults.ts')).faultyFs(original));

/** More reads than a trial makes. */
const READS_MAX = 400;

let root: string;
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'nodekeeper-faults-'));
});
afterEach(() => {
  diskFaults.release();
  rmSync(root, { recursive: true, force: true });
});

describe('the trial of a new version', () => {
  const release = { version: '2.0.0', sha256: 'a'.repeat(64) };
  const READS: readonly DiskFault[] = ['EMFILE', 'EIO'];
  const ALWAYS = Number.POSITIVE_INFINITY;

  /** The new version starts, and confirms itself before the second look at the record if it `works`. */
  async function trialOn(directory: string, { works, from, to }: { works: boolean; from: number; to: number }) {
    const versions = new InstalledVersions(updateFiles(directory));
    async function* content() {
      yield Buffer.from('new');
    }
    await versions.tryNext(await versions.store(release.sha256, content()), release);
    const { trial } = await versions.start();
    if (trial === undefined) throw new Error('no trial');
    let sleeps = 0;
    let passedMs = 0;
    const sleep = async (milliseconds: number): Promise<void> => {
      sleeps += 1;
      passedMs += milliseconds;
      if (sleeps === 2 && works) await versions.confirm(trial);
      if (sleeps === 2) diskFaults.arm(directory, [...READS], from, to);
    };
    const outcome = await trialOutcome(trial, { versions, time: { sleep } });
    const failed = diskFaults.release();
    return { versions, trial, outcome, passedMs, failed };
  }

  it.each([
    [true, 'ended'],
    [false, 'silent'],
  ])('ends as it should though a read of its record fails (confirmed: %s)', async (works, kind) => {
    let reads = 0;
    for (let n = 1; n <= READS_MAX; n += 1) {
      const { outcome, failed } = await trialOn(join(root, String(n)), { works, from: n, to: n });
      expect(outcome.kind, `call ${n}`).toBe(kind);
      if (failed === 0) break;
      reads += 1;
    }
    expect(reads).toBeGreaterThan(works ? 1 : 20);
  });

  it('never ends a version that was confirmed before the disk failed', async () => {
    const { outcome, versions } = await trialOn(root, { works: true, from: 3, to: ALWAYS });
    expect(outcome.kind).toBe('ended');
    expect(await versions.failed()).toEqual([]);
  });

  it('ends in time on a disk that cannot be read, and the next start tries the version again', async () => {
    const { outcome, versions, trial, passedMs } = await trialOn(root, { works: false, from: 1, to: ALWAYS });
    expect(outcome).toMatchObject({ kind: 'unreadable', cause: { message: expect.stringMatching(/^E(IO|MFILE)/) } });
    expect(passedMs).toBeLessThan(130_000);
    expect(await versions.failed()).toEqual([]);
    expect(await versions.start()).toEqual({ file: trial.file, trial: { ...trial, starts: 2 } });
  });

  it('ends on a disk that cannot be read since the version was confirmed, and the next start runs it', async () => {
    const { outcome, versions, trial } = await trialOn(root, { works: true, from: 1, to: ALWAYS });
    expect(outcome.kind).toBe('unreadable');
    expect(await versions.start()).toEqual({ file: trial.file, trial: undefined });
  });
});

describe('the pods on disk', () => {
  it.each(DISK_FAULTS)('are the old ones or the new ones after %s, and never none', async (code) => {
    const owner = { nodeName: 'edge-1', clusterId: 'c' };
    const memoryOf = () =>
      new PodMemory({
        owner,
        generations: stateGenerations(join(root, 'remembered')),
        sealer: undefined,
        log: silentLog,
      });
    const state = (hostIp: string) => ({ pods: [], configMaps: [], secrets: [], tokens: [], hostIp });
    const ips = async () => (await memoryOf().read())?.hostIp;
    await memoryOf().save(state('old'));
    await eachCall(root, [code], async (n) => {
      const memory = memoryOf();
      await memory.save(state(`new ${n}`));
      const failed = diskFaults.release();
      expect(memory.complaint() === undefined ? [`new ${n}`] : ['old', `new ${n}`]).toContain(await ips());
      await memory.save(state('old'));
      expect([await ips(), memory.complaint()]).toEqual(['old', undefined]);
      expect(readdirSync(join(root, 'remembered')).sort()).toEqual(['pods.json', 'pods.previous.json']);
      diskFaults.failed = failed;
    });
  });
});

describe('a state file', () => {
  it.each(DISK_FAULTS)('holds the old text or the new one, and nothing lies beside it, after %s', async (code) => {
    const file = stateFile(join(root, 'state'), '.tmp-state');
    await file.write('old');
    await eachCall(root, [code], async (n) => {
      const wrote = await file.write(`new ${n}`).then(
        () => true,
        () => false,
      );
      const failed = diskFaults.release();
      const text = await file.read();
      if (wrote) expect(text).toBe(`new ${n}`);
      await file.write('old');
      expect(readdirSync(root)).toEqual(['state']);
      diskFaults.failed = failed;
    });
  });
});

describe('the key of a machine', () => {
  it.each(LINK_FAULTS)('is created on a file system without hard links (%s)', async (code) => {
    diskFaults.arm(root, [code], 1, Number.POSITIVE_INFINITY);
    const { keyId } = await machineKey(root);
    expect(diskFaults.release()).toBe(1);
    expect((await presentMachineKey(root))?.keyId).toBe(keyId);
    expect(readdirSync(root)).toEqual(['node-key.pem']);
  });

  it.each(DISK_FAULTS)('is no file after %s, whichever call fails', async (code) => {
    await eachCall(root, [code], async (n) => {
      const directory = join(root, String(n));
      const made = await machineKey(directory).then(
        ({ keyId }) => keyId,
        (error: unknown) => error,
      );
      const failed = diskFaults.release();
      if (made instanceof Error) expect(made).toBeInstanceOf(KeyFileError);
      else expect((await presentMachineKey(directory))?.keyId).toBe(made);
      const { keyId } = await machineKey(directory);
      if (!(made instanceof Error)) expect(keyId).toBe(made);
      diskFaults.failed = failed;
    });
  });
});

describe('output that is too long', () => {
  const name = () => ({ directory: root, container: 'c', run: 0 });
  const LIMITS = { bytesMax: 10, filesMax: 3 };
  /** The call that fails is the one that writes the copy: open, and then each write or truncation. */
  const boundOn = (code: DiskFault, from: number): unknown => {
    writeFileSync(join(root, 'c.0.log'), 'x'.repeat(25));
    writeFileSync(join(root, 'c.0.log.000000000000000'), 'older');
    writeFileSync(join(root, 'c.0.times'), 'times');
    diskFaults.arm(root, [code], from, from);
    try {
      boundLog(name(), LIMITS);
      return undefined;
    } catch (cause) {
      return (cause as NodeJS.ErrnoException).code;
    } finally {
      diskFaults.release();
    }
  };
  const left = (): readonly (readonly [string, number])[] =>
    readdirSync(root)
      .sort()
      .map((file) => [file, readFileSync(join(root, file)).length] as const);

  it.each<DiskFault>(['ENOSPC', 'EDQUOT'])(
    'is cut although its copy has no space (%s), and the older output is removed',
    (code) => {
      expect(boundOn(code, 2)).toBe(code);
      expect(left()).toEqual([['c.0.log', 0]]);
    },
  );

  it('stays when its copy fails for another reason', () => {
    expect(boundOn('EROFS', 2)).toBe('EROFS');
    expect(left().map(([file]) => file)).toEqual(['c.0.log', 'c.0.log.000000000000000', 'c.0.times']);
    expect(left()[0]).toEqual(['c.0.log', 25]);
  });
});
