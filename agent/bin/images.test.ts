import { chmodSync, existsSync, mkdirSync, readdirSync, readFileSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeEach, describe, expect, it } from 'vitest';
import { OFFLINE_STOP_AFTER } from '../../shared/kinds/pods/offline-stop.ts';
import type { KubePod } from '../../shared/kinds/types.ts';
import { folderForTest } from '../../test/support/folder-for-test.ts';
import { loadConfig } from '../adapters/config/load-config.ts';
import { stateGenerations } from '../adapters/system/state-generations.ts';
import { stateText } from '../rules/remembered-state.ts';
import { type ImagesIo, images } from './images.ts';

let directory: string;
let state: string;
beforeEach(() => {
  directory = folderForTest();
  state = join(directory, 'state');
  mkdirSync(state, { mode: 0o700 });
});

function configure(lines = '', runtime = 'podman'): void {
  writeFileSync(
    join(directory, 'agent.yaml'),
    `apiVersion: nodekeeper.dev/v1alpha1
kind: AgentConfiguration
endpoint: https://127.0.0.1:9
token: t
hostnameOverride: n1
rootDirectory: ${state}
runtime: ${runtime}
${lines}`,
  );
}

const podOf = (name: string, image: string, annotations: Record<string, string> = {}): KubePod => ({
  metadata: { name, namespace: 'shop', uid: name, annotations },
  spec: { containers: [{ name: 'main', image }] },
});

const remember = (pods: readonly KubePod[], nodeName = 'n1'): Promise<void> =>
  stateGenerations(join(state, 'remembered')).write(
    stateText({ nodeName, clusterId: 'nodekeeper' }, { pods, configMaps: [] }, 'sealed Secrets'),
  );

/** A podman that records its calls and has the image web:1. */
function podman(script = ''): string {
  const program = join(directory, 'podman');
  const answer = `case "$5" in
  registry.example/web:1) echo '[{"Config":{}}]' ;;
  *) echo "Error: $5: image not known" >&2; exit 125 ;;
esac`;
  writeFileSync(program, `#!/bin/sh\necho "$@" >> ${directory}/calls\n${script}\n${answer}\n`, { mode: 0o755 });
  return program;
}
const calls = (): readonly string[] =>
  existsSync(join(directory, 'calls')) ? readFileSync(join(directory, 'calls'), 'utf8').trim().split('\n') : [];

async function run(args: readonly string[] = [], io: Partial<ImagesIo> = {}) {
  const printed: string[] = [];
  const errors: string[] = [];
  const code = await images(['--config', join(directory, 'agent.yaml'), ...args], {
    print: (line) => printed.push(line),
    printError: (line) => errors.push(line),
    loadConfig,
    podman: io.podman ?? podman(),
    ...io,
  });
  return { code, printed, errors };
}

it('lists the images of remembered and static pods, pulls nothing and writes nothing', async () => {
  const manifests = join(directory, 'manifests');
  mkdirSync(manifests);
  writeFileSync(
    join(manifests, 'proxy.yaml'),
    'apiVersion: v1\nkind: Pod\nmetadata: {name: proxy}\nspec: {containers: [{name: main, image: "registry.example/proxy:3"}]}',
  );
  configure(`---\napiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\nstaticPodPath: ${manifests}`);
  await remember([podOf('web', 'registry.example/web:1'), podOf('api', 'registry.example/api')]);
  const before = readFileSync(join(state, 'remembered/pods.json'), 'utf8');
  expect(await run()).toEqual({
    code: 1,
    errors: [],
    printed: [
      'IMAGE                      WITHOUT A NETWORK   PODS',
      'registry.example/api       always pulled       shop/api',
      'registry.example/proxy:3   missing             default/proxy-n1',
      'registry.example/web:1     here                shop/web',
      'Missing: podman pull IMAGE. Always pulled: set imagePullPolicy: IfNotPresent, and a tag other than latest.',
    ],
  });
  expect(calls()).toEqual([
    'image inspect --format json registry.example/proxy:3',
    'image inspect --format json registry.example/web:1',
  ]);
  expect(readdirSync(state, { recursive: true })).toEqual(['remembered', join('remembered', 'pods.json')]);
  expect(readFileSync(join(state, 'remembered/pods.json'), 'utf8')).toBe(before);
});

it('exits with 0 when all images are here, and has the same as JSON', async () => {
  configure();
  const once = { [OFFLINE_STOP_AFTER]: '2h' };
  await remember([podOf('web', 'registry.example/web:1'), podOf('db', 'registry.example/db:1', once)]);
  const { code, printed } = await run();
  expect([code, printed.at(-1)]).toEqual([0, 'Start when the API answers, with a network: shop/db']);
  const json = await run(['--json']);
  expect([json.code, JSON.parse(json.printed.join('\n'))]).toEqual([
    0,
    {
      runtime: 'podman',
      images: [{ image: 'registry.example/web:1', state: 'here', pods: ['shop/web'] }],
      waiting: ['shop/db'],
      complaints: [],
    },
  ]);
});

it.each([
  ['exec', /^runtime exec: .* no image is pulled\.$/],
  ['none', /^runtime none: this machine runs no pods\.$/],
])('with the runtime %s says that none is pulled', async (runtime, line) => {
  configure('', runtime);
  await remember([podOf('web', 'registry.example/missing:1')]);
  expect(await run()).toEqual({ code: 0, errors: [], printed: [expect.stringMatching(line)] });
  expect(JSON.parse((await run(['--json'])).printed.join('\n'))).toMatchObject({ runtime, images: [] });
  expect(calls()).toEqual([]);
});

it('says that the machine remembers no pods yet, or none by its configuration', async () => {
  configure();
  expect(await run()).toEqual({
    code: 0,
    errors: [],
    printed: [expect.stringMatching(/remembers no pods yet/), 'No pod that starts without the API needs an image.'],
  });
  configure('rememberPods: none');
  await remember([podOf('web', 'registry.example/missing:1')]);
  const { code, printed } = await run();
  expect([code, printed[0]]).toEqual([0, 'rememberPods is none: only static pods start without the API.']);
});

describe('a state that cannot be used', () => {
  beforeEach(() => configure());
  const newest = () => join(state, 'remembered/pods.json');

  it('is not complete: the one before it counts, and the exit code is 1', async () => {
    await remember([podOf('web', 'registry.example/web:1')]);
    await remember([podOf('other', 'registry.example/other:1')]);
    truncateSync(newest(), 100);
    const { code, printed, errors } = await run();
    expect([code, errors]).toEqual([1, ['what this machine ran before cannot be used: pods.json is not complete']]);
    expect(printed.join('\n')).toMatch(/web:1 +here/);
    expect(printed.join('\n')).not.toContain('other');
  });

  it.each<[string, () => Promise<void> | void, string]>([
    ['of another node', () => remember([podOf('web', 'w:1')], 'n2'), 'its nodeName is "n2"'],
    [
      'of another program',
      () => {
        mkdirSync(join(state, 'remembered'));
        writeFileSync(newest(), 'hello');
      },
      'pods.json is not complete',
    ],
  ])('is %s', async (_which, prepare, why) => {
    await prepare();
    const { code, printed, errors } = await run();
    expect([code, errors]).toEqual([1, [`what this machine ran before cannot be used: ${why}`]]);
    expect(printed).toEqual(['No pod that starts without the API needs an image.']);
  });

  it('is of another user: says how to read it, and asks podman nothing', async () => {
    await remember([podOf('web', 'registry.example/web:1')]);
    const loaded = loadConfig(['--config', join(directory, 'agent.yaml')]);
    const isRoot = process.geteuid?.() === 0;
    chmodSync(state, 0);
    // Root may read anything.
    if (isRoot) process.seteuid?.(65_534);
    const other = await run([], { loadConfig: () => loaded, podman: '/nothing' }).finally(() => {
      if (isRoot) process.seteuid?.(0);
      chmodSync(state, 0o700);
    });
    expect(other).toEqual({
      code: 2,
      printed: [],
      errors: [expect.stringMatching(/cannot be read: EACCES.*\. Run as root: sudo nodekeeper-agent images$/)],
    });
  });
});

it('reports that podman does not answer', async () => {
  configure();
  await remember([podOf('web', 'registry.example/web:1')]);
  const { code, printed, errors } = await run([], { podman: podman('echo "no storage" >&2; exit 125') });
  expect([code, printed, errors]).toEqual([2, [], [expect.stringMatching(/podman image inspect: no storage$/)]]);
});

it('does not call podman with a name that is an option, or of no image', async () => {
  configure();
  await remember([podOf('odd', '--root=x:1'), podOf('upper', 'Web:1')]);
  const { code, printed } = await run();
  expect([code, printed.filter((line) => line.includes('missing')).length, calls()]).toEqual([1, 2, []]);
});

it('exits with 1 for a static pod that cannot be read', async () => {
  const manifests = join(directory, 'manifests');
  mkdirSync(manifests);
  writeFileSync(join(manifests, 'bad.yaml'), 'kind: Pod\nspec: [');
  configure(`---\napiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\nstaticPodPath: ${manifests}`);
  const { code, errors } = await run();
  expect([code, errors]).toEqual([1, [expect.stringMatching(/^static pods cannot be read: .*bad\.yaml/)]]);
});

it.each([
  ['an unknown option', ['--output', 'json'], /--output: no such flag/],
  ['an argument', ['web'], /"web": expected a flag/],
  ['a file that is missing', ['--config', '/nowhere.yaml'], /\/nowhere\.yaml/],
])('exits with 2 for %s', async (_which, args, error) => {
  configure();
  const { code, printed, errors } = await run(args);
  expect([code, printed, errors.join('\n')]).toEqual([2, [], expect.stringMatching(error)]);
});

it('prints its usage', async () => {
  const { code, printed } = await run(['--help']);
  expect([code, printed.join('\n')]).toEqual([0, expect.stringMatching(/^Usage: nodekeeper-agent images .*--json/s)]);
});
