/** What every CgroupTree must do. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { CgroupError, type CgroupTree } from '../../agent/ports/cgroup-tree.ts';
import { until } from '../support/until.ts';

export interface TreeUnderTest {
  readonly tree: CgroupTree;
  /** Starts a process that waits, and after `release` has a child in another session. */
  start(): { readonly pid: number; release(): Promise<number> };
  isAlive(pid: number): boolean;
  dispose(): void;
}

const MISSING_PID = 2 ** 30;
const soon = { withinMs: 10_000, everyMs: 20 };

export function defineCgroupTreeContract(name: string, open: () => TreeUnderTest, skip?: string): void {
  const suite = skip === undefined ? describe : describe.skip;
  suite(`the control groups: ${name}${skip === undefined ? '' : ` (skipped: ${skip})`}`, () => {
    let under: TreeUnderTest;
    let tree: CgroupTree;

    beforeEach(() => {
      under = open();
      tree = under.tree;
    });
    afterEach(() => under.dispose());

    it('creates a group with those above it', () => {
      tree.apply('pods/a/b', {});
      tree.apply('pods/a/b', {});
      expect(tree.children('pods')).toEqual(['a']);
      expect(tree.children('pods/a')).toEqual(['b']);
      expect(tree.processes('pods')).toEqual([]);
    });

    it('writes the files of its controllers, and leaves out the others', () => {
      tree.apply('pods/a', { 'pids.max': '17', 'nosuchcontroller.max': '1' });
      expect(tree.read('pods/a', 'pids.max')?.trim()).toBe(tree.controllers.has('pids') ? '17' : undefined);
      expect(tree.read('pods/a', 'nosuchcontroller.max')).toBeUndefined();
      tree.apply('pods/a', { 'pids.max': 'max' });
      expect(tree.read('pods/a', 'pids.max')?.trim()).toBe(tree.controllers.has('pids') ? 'max' : undefined);
    });

    it('has nothing to say about a group that does not exist', () => {
      expect(tree.children('none')).toEqual([]);
      expect(tree.processes('none')).toEqual([]);
      expect(tree.read('none', 'pids.max')).toBeUndefined();
      tree.kill('none');
      expect(tree.remove('none')).toBe(true);
    });

    it('holds a process with all that it starts, also in another session, and kills them', async () => {
      tree.apply('pods/a', {});
      const { pid, release } = under.start();
      tree.enter('pods/a', pid);
      const child = await release();
      expect([...tree.processes('pods')]).toEqual(expect.arrayContaining([pid, child]));
      expect(tree.remove('pods/a')).toBe(false);
      tree.kill('pods');
      await until(() => !under.isAlive(pid) && !under.isAlive(child), { ...soon, what: 'the end of the processes' });
      await until(() => tree.remove('pods'), { ...soon, what: 'the removal of the group' });
      expect(tree.children('pods')).toEqual([]);
    });

    it('refuses a process that does not exist', () => {
      tree.apply('pods/a', {});
      expect(() => tree.enter('pods/a', MISSING_PID)).toThrow(CgroupError);
    });
  });
}
