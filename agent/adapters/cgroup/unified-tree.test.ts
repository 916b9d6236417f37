import { once } from 'node:events';
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeEach, describe, expect, it } from 'vitest';
import { folderForTest } from '../../../test/support/folder-for-test.ts';
import { startForTest } from '../../../test/support/started-process.ts';
import { moveProcesses, UnifiedTree, writeFault } from './unified-tree.ts';

/** A directory with the files of a group. Nothing happens when they are written, and each write replaces the text. */
let root: string;
const at = (...names: string[]): string => join(root, ...names);
const text = (...names: string[]): string => readFileSync(at(...names), 'utf8');

function group(path: string, files: Readonly<Record<string, string>> = {}): void {
  mkdirSync(at(path), { recursive: true });
  const all = { 'cgroup.controllers': 'cpu memory pids\n', 'cgroup.subtree_control': '', 'cgroup.procs': '', ...files };
  for (const [name, content] of Object.entries(all)) writeFileSync(at(path, name), content);
}
const waiting = async (): Promise<{ pid: number; ended: Promise<unknown> }> => {
  const child = startForTest('sleep', ['60']);
  const ended = once(child, 'exit');
  await once(child, 'spawn');
  return { pid: child.pid ?? Number.NaN, ended };
};

beforeEach(() => {
  root = folderForTest();
  group('', { 'cgroup.subtree_control': 'cpu memory\n' });
});

const open = (): UnifiedTree => new UnifiedTree(root, ['cpu', 'memory', 'pids', 'io']);

describe('the controllers', () => {
  it('are those that groups below have, and available ones are requested', () => {
    expect([...open().controllers]).toEqual([]);
    // This directory keeps the last request alone.
    expect(text('cgroup.subtree_control')).toBe('+pids\n');
    writeFileSync(at('cgroup.subtree_control'), ' cpu pids memory \n');
    expect([...open().controllers]).toEqual(['cpu', 'memory', 'pids']);
    expect(text('cgroup.subtree_control')).toBe(' cpu pids memory \n');
  });

  it('cannot be read in a directory that is no group', () => {
    rmSync(at('cgroup.subtree_control'));
    mkdirSync(at('cgroup.subtree_control'));
    expect(open).toThrow(`${at('cgroup.subtree_control')} cannot be read: EISDIR`);
    rmSync(at('cgroup.controllers'));
    expect(open).toThrow(`${at('cgroup.controllers')} cannot be read: ENOENT`);
  });
});

describe('a group', () => {
  let tree: UnifiedTree;
  beforeEach(() => {
    writeFileSync(at('cgroup.subtree_control'), 'cpu memory pids');
    tree = open();
  });

  it('has the files of its controllers, if the kernel has them', () => {
    group('a', { 'pids.max': 'max', 'memory.max': 'max', 'io.max': 'max' });
    tree.apply('a', { 'pids.max': '7', 'memory.max': '1', 'io.max': '5', 'memory.swap.max': '0' });
    expect([text('a', 'pids.max'), text('a', 'memory.max'), text('a', 'io.max')]).toEqual(['7\n', '1\n', 'max']);
    expect(existsSync(at('a/memory.swap.max'))).toBe(false);
    rmSync(at('a/pids.max'));
    mkdirSync(at('a/pids.max'));
    expect(() => tree.apply('a', { 'pids.max': '7' })).toThrow('a/pids.max cannot be set to "7": EISDIR');
  });

  it('is created below groups that pass their controllers down', () => {
    group('a');
    tree.apply('a/b', {});
    expect([existsSync(at('a/b')), text('a', 'cgroup.subtree_control')]).toEqual([true, '+pids\n']);
    expect(() => tree.apply('new/b', {})).toThrow(`${at('new/cgroup.controllers')} cannot be read`);
    expect(existsSync(at('new'))).toBe(true);
    expect(() => tree.apply('cgroup.procs/x', {})).toThrow(
      `${at('cgroup.procs/cgroup.controllers')} cannot be read: ENOTDIR`,
    );
  });

  it('lists groups and not files, and nothing where there is none', () => {
    group('a');
    group('a/b');
    expect([tree.children('a'), tree.children('a/b'), tree.children('none')]).toEqual([['b'], [], []]);
    expect(() => tree.children('cgroup.procs')).toThrow('the groups in cgroup.procs cannot be listed: ENOTDIR');
  });

  it('has its processes and those below, to a depth of eight', () => {
    group('a', { 'cgroup.procs': '1\n22\n' });
    group('a/b', { 'cgroup.procs': '333\n' });
    expect(tree.processes('a')).toEqual([1, 22, 333]);
    const deep = Array.from({ length: 9 }, (_, index) => `${index + 1}`);
    for (const [index, name] of deep.entries()) {
      group(['d', ...deep.slice(0, index), name].join('/'), { 'cgroup.procs': `${name}\n` });
    }
    expect(tree.processes('d')).toEqual([1, 2, 3, 4, 5, 6, 7, 8]);
  });

  it('reads a file, and undefined where there is none', () => {
    group('a', { 'pids.current': '3\n' });
    expect([tree.read('a', 'pids.current'), tree.read('a', 'none'), tree.read('none', 'x')]).toEqual([
      '3\n',
      undefined,
      undefined,
    ]);
    expect(() => tree.read('', 'a')).toThrow('/a cannot be read: EISDIR');
  });

  it('is entered by a process', () => {
    group('a');
    tree.enter('a', 42);
    expect(text('a', 'cgroup.procs')).toBe('42\n');
    expect(() => tree.enter('none', 42)).toThrow('process 42 cannot enter none: ENOENT');
  });

  it('is killed by the kernel where it can', () => {
    group('a', { 'cgroup.kill': '', 'cgroup.procs': '1\n' });
    tree.kill('a');
    tree.kill('none');
    expect(text('a', 'cgroup.kill')).toBe('1\n');
    rmSync(at('a/cgroup.kill'));
    mkdirSync(at('a/cgroup.kill'));
    expect(() => tree.kill('a')).toThrow('a cannot be killed: EISDIR');
  });

  it('is frozen, killed process by process and thawed where the kernel cannot', async () => {
    const one = await waiting();
    const other = await waiting();
    group('a', { 'cgroup.procs': `${one.pid}\n${2 ** 22 + 7}\n`, 'cgroup.freeze': '0' });
    group('a/b', { 'cgroup.procs': `${other.pid}\n` });
    tree.kill('a');
    expect(await one.ended).toEqual([null, 'SIGKILL']);
    expect(await other.ended).toEqual([null, 'SIGKILL']);
    expect(text('a', 'cgroup.freeze')).toBe('0\n');
    rmSync(at('a/cgroup.freeze'));
    mkdirSync(at('a/cgroup.freeze'));
    expect(() => tree.kill('a')).toThrow('a cannot be frozen: EISDIR');
  });

  it('is removed with those below', () => {
    // Real groups are removed with their files, so these have none.
    mkdirSync(at('a/b/c'), { recursive: true });
    expect(tree.remove('a')).toBe(true);
    expect([existsSync(at('a')), tree.remove('a')]).toEqual([false, true]);
    mkdirSync(at('f'));
    writeFileSync(at('f/x'), '');
    expect(() => tree.remove('f')).toThrow('f cannot be removed: ENOTEMPTY');
    mkdirSync(at('deep/1/2/3/4/5/6/7/8'), { recursive: true });
    expect(tree.remove('deep')).toBe(true);
    mkdirSync(at('deep/1/2/3/4/5/6/7/8/9'), { recursive: true });
    expect(() => tree.remove('deep')).toThrow('cannot be removed: ENOTEMPTY');
  });
});

describe('the group of a unit', () => {
  it('passes its processes to one below', () => {
    group('u');
    moveProcesses(at('u'), 'unit');
    expect(existsSync(at('u/unit'))).toBe(false);
    writeFileSync(at('u/cgroup.procs'), '5\n6\n');
    moveProcesses(at('u'), 'unit');
    expect(text('u/unit', 'cgroup.procs')).toBe('6\n');
    expect(() => moveProcesses(at('none'), 'unit')).toThrow(`the processes in ${at('none')} cannot be moved: ENOENT`);
  });

  it('says why no groups can be created', () => {
    expect(writeFault(root)).toBeUndefined();
    rmSync(at('cgroup.procs'));
    expect(writeFault(root)).toContain('ENOENT');
  });
});
