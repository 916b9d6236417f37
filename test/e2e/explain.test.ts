/** Decisions as users read them: with kubectl, and with `nodekeeper explain` as a process with its exit codes. */
import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { cloudDraft } from '../../functions/cloud-node/decisions.ts';
import { type DecisionDraft, sealed } from '../../shared/decisions/decision-record.ts';
import { decisionWrite } from '../../shared/decisions/decision-store.ts';
import { decideCloud } from '../../shared/fleet/instances/rule.ts';
import { defaultPolicy } from '../../shared/fleet/policy.ts';
import { swapDraft } from '../../shared/fleet/taints/decisions.ts';
import type { ItemStore } from '../../shared/store/item-store.ts';
import { memoryItemStore } from '../../shared/store/memory/item-store.ts';
import { kubectlOf, startKubectl } from '../support/kubectl.ts';
import { type MemoryApi, startMemoryApi } from '../support/memory-api.ts';

const NODE = { nodeName: 'n1', uid: 'u1' };
const PROGRAM = fileURLToPath(new URL('../../cli/bin/nodekeeper.mjs', import.meta.url));
const kubectl = kubectlOf(32);
let api: MemoryApi;
let items: ItemStore;

const keep = (draft: DecisionDraft) => items.write(decisionWrite(sealed({ ...draft, v: 1, policy: 'p', slot: 7 })));

beforeAll(async () => {
  items = memoryItemStore();
  const nowMs = Date.now() - 60_000;
  const question = {
    ...NODE,
    ready: 'Unknown',
    answer: { kind: 'found', state: 'stopped', launchedAtMs: undefined },
    memory: {},
    createdAtMs: 0,
    hasShutdownTaint: false,
  } as const;
  await keep(
    swapDraft(
      { ...NODE, nowMs, ready: 'Unknown', noExecute: { notReady: true, unreachable: false } },
      'notReady',
      'unreachable',
    ),
  );
  await keep(
    cloudDraft(decideCloud(question, nowMs + 5_000, defaultPolicy).decision, question, nowMs + 5_000, defaultPolicy),
  );
  api = await startMemoryApi(items);
});
afterAll(() => api.stop());

function explain(...args: string[]): Promise<{ readonly code: number; readonly out: string; readonly err: string }> {
  return new Promise((resolve) => {
    const all = [PROGRAM, 'explain', ...args, '--kubeconfig', api.kubeconfig];
    execFile(process.execPath, all, { encoding: 'utf8', timeout: 60_000 }, (error, out, err) => {
      resolve({ code: error === null ? 0 : Number(error.code), out, err });
    });
  });
}

describe.runIf(kubectl !== undefined)('kubectl', () => {
  const run = (...args: string[]) => startKubectl(kubectl!, args, { kubeconfig: api.kubeconfig }).ended;

  it('lists decisions about a node, and shows a complete one', async () => {
    const { stdout, stderr } = await run('get', 'decisions.nodekeeper.dev', '--field-selector', 'node=n1');
    expect(stderr).toBe('');
    expect(stdout.split('\n').map((line) => line.split(/ {2,}/).slice(1))).toEqual([
      ['ABOUT', 'ACT', 'REASON'],
      [
        'node/n1',
        'TaintSwapped',
        'Ready is Unknown: taint notReady replaced by unreachable; toleration times of pods keep running',
      ],
      ['node/n1', 'ShutdownTaintAdded', 'EC2 instance state stopped: the shutdown taint is added'],
      [],
    ]);
    const names = (await run('get', 'decisions', '-o', 'name')).stdout.trim().split('\n');
    expect(names).toHaveLength(2);
    const yaml = (await run('get', names[1]!, '-o', 'yaml')).stdout;
    expect(yaml).toContain('kind: Decision');
    expect(yaml).toContain('state: stopped');
    expect(yaml).toContain('slot: 7');
  });

  it('cannot delete or change one', async () => {
    const [name] = (await run('get', 'decisions', '-o', 'name')).stdout.trim().split('\n');
    for (const verb of [['delete'], ['annotate', '--overwrite']]) {
      const { exitCode, stderr } = await run(...verb, name!, ...(verb[0] === 'delete' ? [] : ['a=b']));
      expect([verb[0], exitCode, stderr]).toEqual([verb[0], 1, expect.stringContaining('does not allow this method')]);
    }
  });

  it('explains the fields', async () => {
    expect((await run('explain', 'decisions.spec.reason')).stdout).toContain('Why, for people.');
  });
});

describe('nodekeeper explain', () => {
  it('exits with 0 when all outcomes are the same, and with 1 when a record was changed', async () => {
    const good = await explain('node', 'n1', '--verify');
    expect([good.code, good.err]).toEqual([0, '']);
    expect(good.out).toContain('2 decisions replayed: same outcome');
    // No rule swaps a taint of a node that is Ready.
    const noExecute = { notReady: true, unreachable: false };
    await keep(swapDraft({ ...NODE, nowMs: Date.now(), ready: 'True', noExecute }, 'notReady', 'unreachable'));
    const bad = await explain('node', 'n1', '--verify');
    expect(bad.code).toBe(1);
    expect(bad.err).toContain('1 of 3 decisions have another outcome');
    expect(bad.err).toContain('kubectl get decisions.nodekeeper.dev');
  });

  it('states what to do when there is no decision', async () => {
    const { code, err } = await explain('node', 'n2');
    expect(code).toBe(1);
    expect(err).toContain('no decision about node n2');
    expect(err).toContain('kubectl get nodes');
  });
});
