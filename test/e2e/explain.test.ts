/** Decisions as users read them: with kubectl, and with `nodekeeper explain` as a process with its exit codes. */
import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type SendToApi, sendToApi } from '../../cli/api-request.ts';
import { decisionsCommand } from '../../cli/decisions.ts';
import { cloudDraft } from '../../functions/cloud-node/decisions.ts';
import { type DecisionDraft, sealed } from '../../shared/decisions/decision-record.ts';
import { decisionWrite } from '../../shared/decisions/decision-store.ts';
import { decideCloud } from '../../shared/fleet/instances/rule.ts';
import { swapDraft } from '../../shared/fleet/nodes/taint-decisions.ts';
import { defaultPolicy } from '../../shared/fleet/policy.ts';
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

const swapped = (nodeName: string, nowMs: number): DecisionDraft =>
  swapDraft(
    { ...NODE, nodeName, nowMs, ready: 'Unknown', noExecute: { notReady: true, unreachable: false } },
    'notReady',
    'unreachable',
  );

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
  await keep(swapped('n1', nowMs));
  await keep(
    cloudDraft(decideCloud(question, nowMs + 5_000, defaultPolicy).decision, question, nowMs + 5_000, defaultPolicy),
  );
  api = await startMemoryApi(items);
});
afterAll(() => api.stop());

const explain = (...args: string[]) => run('explain', ...args);

function run(...args: string[]): Promise<{ readonly code: number; readonly out: string; readonly err: string }> {
  return new Promise((resolve) => {
    const all = [PROGRAM, ...args, '--kubeconfig', api.kubeconfig];
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
      ['node/n1', 'TaintSwapped', 'Ready is Unknown: taint notReady replaced by unreachable; toleration ti…'],
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

  it('lists all of them in order of time, and the whole reason where the list is wide', async () => {
    await keep(swapped('a-later', Date.now() - 5_000));
    const { stdout } = await run('get', 'decisions', '-o', 'wide');
    const acts = (text: string) =>
      text
        .split('\n')
        .slice(1, -1)
        .map((line) => line.split(/ {2,}/).slice(1, 3));
    const inTime = [
      ['node/n1', 'TaintSwapped'],
      ['node/n1', 'ShutdownTaintAdded'],
      ['node/a-later', 'TaintSwapped'],
    ];
    expect(acts(stdout)).toEqual(inTime);
    // Pages of 500, here of one, are each in order. In one page, all are.
    const pages = acts((await run('get', 'decisions', '--chunk-size=1')).stdout);
    expect(pages).not.toEqual(inTime);
    expect(pages).toEqual(expect.arrayContaining(inTime));
    expect(acts((await run('get', 'decisions', '--chunk-size=0')).stdout)).toEqual(inTime);
    expect(stdout).toContain('replaced by unreachable; toleration times of pods keep running');
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

describe('nodekeeper decisions', () => {
  it('prints a log in order of time, of one node or of all', async () => {
    await keep(swapped('a-later', Date.now() - 5_000));
    const ofOne = await run('decisions', '--node', 'n1');
    expect([ofOne.code, ofOne.out]).toEqual([
      0,
      expect.stringMatching(
        /^\S+Z {2}node\/n1 {2}TaintSwapped {8}Ready is Unknown: .*keep running\n\S+Z {2}node\/n1 {2}ShutdownTaintAdded {2}EC2 instance state stopped: .*\n$/,
      ),
    ]);
    const all = (await run('decisions')).out.trim().split('\n');
    expect(all.map((line) => line.split(/ {2,}/)[1]).slice(0, 3)).toEqual(['node/n1', 'node/n1', 'node/a-later']);
  });

  it('follows: each decision once, also one that comes later', async () => {
    const lines: string[] = [];
    let looks = 0;
    const io = { environment: {}, nowMs: Date.now(), print: (line: string) => void lines.push(line) };
    await decisionsCommand(['-f', '--node', 'late', '--kubeconfig', api.kubeconfig], io, sendToApi, async () => {
      looks += 1;
      if (looks === 1) await keep(swapped('late', Date.now()));
      return looks < 3;
    });
    expect(lines.map((line) => line.split(/ {2,}/).slice(1, 3))).toEqual([['node/late', 'TaintSwapped']]);
  });

  it('states what to do when there is none', async () => {
    expect(await run('decisions', '--node', 'n9')).toMatchObject({
      code: 1,
      err: expect.stringMatching(/^nodekeeper decisions: no decision about node n9 since \S+\ncheck the name, or /),
    });
  });

  it('names the nodes without a zone, and says when there are more than it reads', async () => {
    const lines: string[] = [];
    const notes: string[] = [];
    const io = {
      ...{ environment: {}, nowMs: Date.now() },
      print: (line: string) => void lines.push(line),
      note: (line: string) => void notes.push(line),
    };
    const record = { v: 1, act: 'ZoneStateSet', about: { kind: 'Zone', name: '' }, atMs: io.nowMs, reason: 'Normal' };
    const endless: SendToApi = async () => ({
      items: [{ metadata: { name: 'one' }, spec: record }],
      metadata: { continue: 'more' },
    });
    await decisionsCommand(['--kubeconfig', api.kubeconfig], io, endless);
    expect(lines[0]).toMatch(/Z {2}nodes without a zone {2}ZoneStateSet {2}Normal$/);
    expect(notes).toEqual([expect.stringContaining('20000 records were read and there are more')]);
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
