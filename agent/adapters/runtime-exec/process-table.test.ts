import { once } from 'node:events';
import { closeSync, mkdirSync, openSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { folderForTest } from '../../../test/support/folder-for-test.ts';
import { startForTest } from '../../../test/support/started-process.ts';
import { until } from '../../../test/support/until.ts';
import {
  identify,
  isAlive,
  isShortage,
  linuxProcesses,
  MARK,
  processesWith,
  readBootId,
  signal,
} from './process-table.ts';

const MISSING_PID = 2 ** 22 + 7;

async function start([file = '', ...args]: readonly string[], env: Readonly<Record<string, string>> = {}) {
  const child = startForTest(file, args, env);
  await once(child, 'spawn');
  if (child.pid === undefined) throw new Error('no process');
  return { child, pid: child.pid, exited: once(child, 'exit') };
}

describe('a process', () => {
  it('is the same until it ends, in this boot', async () => {
    // Its name has the characters that separate the fields of its stat.
    const { pid, child, exited } = await start(['sh', '-c', 'echo "a) Z 1 (b" > /proc/$$/comm; echo named; read line']);
    await once(child.stdout ?? child, 'data');
    const identity = identify(pid, 'b1');
    if (identity === undefined) throw new Error('no identity');
    expect(identity).toEqual({ pid, startTicks: expect.stringMatching(/^[1-9]\d*$/), bootId: 'b1' });
    expect(isAlive(identity, 'b1')).toBe(true);
    expect(isAlive(identity, 'b2')).toBe(false);
    expect(isAlive({ ...identity, startTicks: '1' }, 'b1')).toBe(false);
    child.kill('SIGKILL');
    await exited;
    expect(isAlive(identity, 'b1')).toBe(false);
    expect([identify(MISSING_PID, 'b1'), linuxProcesses.residentBytes(MISSING_PID)]).toEqual([undefined, 0]);
    expect(linuxProcesses.residentBytes(process.pid)).toBeGreaterThan(2 ** 20);
  });

  it('is not alive as a zombie', async () => {
    // The parent does not wait for its child.
    const { child } = await start(['sh', '-c', 'sleep 0 & echo $!; exec sleep 60']);
    const [line] = (await once(child.stdout ?? child, 'data')) as [Buffer];
    const pid = Number(line.toString());
    await until(
      () => {
        const found = identify(pid, 'b1');
        return found !== undefined && !isAlive(found, 'b1');
      },
      { withinMs: 30_000 },
    );
    expect(linuxProcesses.residentBytes(pid)).toBe(0);
  });

  it('is found by the value of a variable of its own', async () => {
    const name = 'NODEKEEPER_TEST_MARK';
    const { pid } = await start(['sleep', '60'], {
      OTHER: `${name}=wrong`,
      [`X${name}`]: 'wrong',
      [name]: 'u1/main=/0',
    });
    const found = processesWith(name).filter((each) => each.pid === pid);
    expect(found).toEqual([{ pid, mark: 'u1/main=/0' }]);
    expect(processesWith(name).some((each) => each.pid === process.pid)).toBe(false);
    const marked = await start(['sleep', '60'], { [MARK]: 'u2/main/1' });
    expect(linuxProcesses.marked()).toContainEqual({ pid: marked.pid, mark: 'u2/main/1' });
    expect(linuxProcesses.marked().some((each) => each.pid === pid)).toBe(false);
  });

  it('is signalled alone, or with its group', async () => {
    const one = await start(['sleep', '60']);
    expect(signal(one.pid, 'SIGTERM')).toBeUndefined();
    expect(await one.exited).toEqual([null, 'SIGTERM']);
    const group = await start(['sh', '-c', 'sleep 60 & wait']);
    expect(signal(-group.pid, 'SIGKILL')).toBeUndefined();
    expect(await group.exited).toEqual([null, 'SIGKILL']);
    expect(signal(MISSING_PID, 'SIGTERM')).toBeUndefined();
    expect(signal(process.pid, 'SIGNONE' as never)).toContain('SIGNONE');
  });
});

it('knows the boot, and errors that may pass', () => {
  expect(readBootId()).toMatch(/^[0-9a-f-]{36}$/);
  const failed = (code?: string) => isShortage(Object.assign(new Error('x'), code === undefined ? {} : { code }));
  expect(['EMFILE', 'ENFILE', 'ENOMEM', 'EAGAIN'].map(failed)).toEqual([true, true, true, true]);
  expect([failed('ENOENT'), failed()]).toEqual([false, false]);
});

describe('a file of the kernel', () => {
  it('says nothing of a process that exited while it was read', async () => {
    const { pid, child, exited } = await start(['sleep', '60']);
    const root = folderForTest();
    mkdirSync(join(root, '7'));
    const stat = openSync(`/proc/${pid}/stat`, 'r');
    symlinkSync(`/proc/self/fd/${stat}`, join(root, '7', 'stat'));
    expect(identify(7, 'b1', root)).toMatchObject({ pid: 7 });
    child.kill('SIGKILL');
    await exited;
    expect(identify(7, 'b1', root)).toBeUndefined();
    closeSync(stat);
  });

  it('that cannot be read is a fault, and one that does not exist is none', () => {
    const root = folderForTest();
    expect([identify(7, 'b1', root), readBootId(root)]).toEqual([undefined, '']);
    mkdirSync(join(root, '7', 'stat'), { recursive: true });
    mkdirSync(join(root, 'sys/kernel/random/boot_id'), { recursive: true });
    expect(() => identify(7, 'b1', root)).toThrow(/EISDIR/);
    expect(() => readBootId(root)).toThrow(/EISDIR/);
  });
});
