/**
 * README and the first hour as a new user plays them: every command as it is typed, in a tree that was just cloned. A
 * command that this file does not know is an error. The cluster has a port of its own and short times, and is the whole
 * system of `npm start`.
 */
import { readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type ClonedTree, cloneTree, ROOT, type Typed } from '../support/cloned-tree.ts';
import { kubectlOf } from '../support/kubectl.ts';
import { until } from '../support/until.ts';

const PAGES = ['README.md', 'docs/guides/first-hour.md'].map((page) => readFileSync(join(ROOT, page), 'utf8'));
const README = PAGES[0]!;
const POLICY = 'nodeMonitorGracePeriodSeconds: 12\nbeatIntervalSeconds: 3\nleaseDurationSeconds: 12\n';
const SOON = { withinMs: 60_000, everyMs: 500 };

/** The lines of their shell blocks without comments. */
const commands = [...PAGES.join('\n').matchAll(/```sh\n([\s\S]*?)```/g)]
  .flatMap(([, block = '']) => block.split('\n'))
  .map((line) => line.replace(/ +#.*$/, '').trim())
  .filter((line) => line !== '');

/** What each prints at last. */
const PRINTS: Readonly<Record<string, RegExp>> = {
  'export KUBECONFIG=$PWD/.nodekeeper/kubeconfig': /^$/,
  'kubectl get nodes -o wide': /(edge-[abc]-[01] +Ready .*simulated:.*\n){6}/,
  'kubectl create deployment web --image=nginx --replicas=3': /deployment\.apps\/web created/,
  'kubectl get pods -o wide': /(web-\S+ +1\/1 +Running .*\n){3}/,
  'npx nodekeeper demo fleet silence edge-b-0': /edge-b-0 silent/,
  'kubectl get nodes': /edge-b-0 +NotReady/,
  'kubectl get events': /Normal +NodeNotReady +node\/edge-b-0/,
  'npx nodekeeper demo fleet beat edge-b-0': /edge-b-0 beating/,
  'npx nodekeeper demo cloud terminate edge-a-0': /edge-a-0/,
  'npx nodekeeper explain node edge-a-0 --verify':
    /NodeDeleted +EC2 instance state terminated[\s\S]*decisions replayed: same outcome/,
  'npx nodekeeper decisions': /node\/edge-b-0 +MarkUnknown[\s\S]*node\/edge-a-0 +NodeDeleted/,
  'kubectl run hello --image=none --restart=Never --overrides=\'{"spec":{"nodeName":"my-machine"}}\' --command -- date':
    /pod\/hello created/,
  'kubectl logs hello': /\d\d:\d\d:\d\d/,
  'npx nodekeeper demo machine join site-1': /site-1 joins/,
  [`kubectl run clock --image=none --overrides='{"spec":{"nodeName":"site-1"}}' --command -- sh -c "date >> $PWD/.nodekeeper/starts; sleep infinity"`]:
    /pod\/clock created/,
  'kubectl wait --for=condition=Ready pod/clock --timeout=60s': /condition met/,
  'npx nodekeeper demo machine link cut site-1': /site-1 link cut/,
  'npx nodekeeper demo machine power-cycle site-1': /site-1 starts again/,
  'cat .nodekeeper/starts': /^(.+\n){2}$/,
  'npx nodekeeper demo machine link restore site-1': /site-1 link restored/,
  'kubectl get pod clock': /clock +1\/1 +Running +1 /,
  'npm run simulate -- --policy policy.example.yaml scenarios/one-zone-dark.yaml': /one-zone-dark: holds/,
};
/** These run until they are interrupted. */
const LONG: readonly string[] = [
  'npm ci && npm start',
  'kubectl get nodes --watch',
  'eval "$(npx nodekeeper join-command --node-name my-machine)"',
];
/** This test is part of it. */
const NOT_PLAYED = ['npm ci && npm test'];

it('names no command that is not played, and has the length of one page', () => {
  expect(commands.filter((each) => ![...Object.keys(PRINTS), ...LONG, ...NOT_PLAYED].includes(each))).toEqual([]);
  expect([...Object.keys(PRINTS), ...LONG].filter((each) => !commands.includes(each))).toEqual([]);
  expect(README.split('\n').length).toBeLessThanOrEqual(120);
});

describe.skipIf(kubectlOf(32) === undefined)('the first session', { timeout: 180_000 }, () => {
  let tree: ClonedTree;
  let start: Typed;
  const type = (command: string): Typed => tree.type(command);

  /** Types the command until it prints what is expected, as a person looks again. */
  async function prints(command: string): Promise<string> {
    let output = '';
    await until(async () => {
      const typed = type(command);
      const code = await typed.ended;
      output = typed.output();
      return code === 0 && PRINTS[command]!.test(output);
    }, SOON).catch((error: Error) => {
      throw new Error(`${command}: ${error.message}\n${output}`);
    });
    expect(output).not.toContain('EBADENGINE');
    return output;
  }

  async function shows(typed: Typed, text: RegExp): Promise<void> {
    await until(() => text.test(typed.output()), SOON).catch((error: Error) => {
      throw new Error(`${text}: ${error.message}\n${typed.output()}`);
    });
  }

  beforeAll(async () => {
    tree = cloneTree(POLICY);
    start = type('npm start -- --port 0 --no-console --policy short.yaml');
    await shows(start, /Nodekeeper serves https:\S+ after/);
  }, 120_000);

  afterAll(async () => {
    await tree?.remove();
  });

  it('begins as npm start prints it, and keeps the data for its owner', () => {
    const printed = start
      .output()
      .split('\n')
      .map((line) => line.replace(/ +#.*$/, '').trim());
    const typed = printed.filter((line) => /^(export|kubectl|npm run|npx) /.test(line));
    expect(typed.length).toBeGreaterThan(4);
    expect(typed.filter((line) => !commands.includes(line))).toEqual([]);
    for (const [path, mode] of [
      ['.nodekeeper', 0o700],
      ['.nodekeeper/kubeconfig', 0o600],
    ] as const) {
      expect(statSync(join(tree.path, path)).mode & 0o777, path).toBe(mode);
    }
  });

  it('shows nodes and pods', async () => {
    for (const command of commands.slice(2, 6)) await prints(command);
  });

  it('silences a machine, and terminates another', async () => {
    await prints('npx nodekeeper demo fleet silence edge-b-0');
    const watch = type('kubectl get nodes --watch');
    await prints('npx nodekeeper demo cloud terminate edge-a-0');
    await prints('kubectl get nodes');
    await prints('kubectl get events');
    await prints('npx nodekeeper demo fleet beat edge-b-0');
    await shows(watch, /edge-a-0 +NotReady/);
    await tree.interrupt(watch);
    await prints('npx nodekeeper explain node edge-a-0 --verify');
    await prints('npx nodekeeper decisions');
  });

  it('joins this machine, and runs a pod on it', async () => {
    const join = type(LONG[2]!);
    await shows(join, /"message":"registered"/);
    await prints(commands.find((each) => each.startsWith('kubectl run hello'))!);
    await prints('kubectl logs hello');
    await tree.interrupt(join);
  });

  it('cuts a link and the power: a pod starts again without the cluster, and does not when the link returns', async () => {
    const story = commands.slice(commands.indexOf('npx nodekeeper demo machine join site-1'));
    for (const command of story.slice(0, story.indexOf('kubectl get pod clock') + 1)) await prints(command);
    expect(readFileSync(join(tree.path, '.nodekeeper/starts'), 'utf8')).toMatch(PRINTS['cat .nodekeeper/starts']!);
  });

  it('tries a policy on virtual time', async () => {
    await prints('npm run simulate -- --policy policy.example.yaml scenarios/one-zone-dark.yaml');
  });
});
