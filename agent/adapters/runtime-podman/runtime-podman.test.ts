import { randomUUID } from 'node:crypto';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { Container, KubePod } from '../../../shared/kinds/types.ts';
import { silentLog } from '../../../test/support/agent-api.ts';
import { realTime } from '../../../test/support/real-time.ts';
import { until } from '../../../test/support/until.ts';
import type { ContainerState, PodRuntime } from '../../ports/pod-runtime.ts';
import type { CgroupNode } from '../../rules/cgroup-values.ts';
import { podStatusOf } from '../../rules/pod-status.ts';
import { podmanRuntime } from './runtime-podman.ts';

const LIMITS: CgroupNode = {
  swap: { cgroupVersion: 2, controllerPresent: true, swapBehavior: 'LimitedSwap', memoryBytes: 8e9, swapBytes: 4e9 },
  enforceCpuLimits: true,
  podPidsMax: 64,
};
const UID = randomUUID();
const POD: KubePod = {
  metadata: { name: 'web', namespace: 'shop', uid: UID },
  spec: {
    containers: [
      {
        name: 'main',
        image: 'registry.example/web:1',
        resources: { requests: { cpu: '250m', memory: '1G' }, limits: { memory: '2G', cpu: '500m' } },
      },
    ],
  },
};
/** The first process of each container is that of the test. Its image exists, unless the script says otherwise. */
const ANSWERS = `
pidfile=
for word; do [ "$previous" != --pidfile ] || echo $PPID > "$word"; previous=$word; done
case "$1 $2" in
  'image inspect') echo '[{"Config":{}}]' ;;
  'container inspect') echo '[{"NetworkSettings":{"Networks":{"podman":{"IPAddress":"10.88.0.7"}}}}]' ;;
  'create '*) echo 0123abcd ;;
esac`;

let directory: string;
let runtime: PodRuntime | undefined;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'nodekeeper-podman-'));
});
afterEach(async () => {
  await runtime?.close();
  rmSync(directory, { recursive: true });
});

/** A podman that records its calls, and runs a script first. */
function open(script = ''): PodRuntime {
  const program = join(directory, 'podman');
  const record = `echo "$@" >> ${directory}/calls; env >> ${directory}/env`;
  writeFileSync(program, `#!/bin/sh\n${record}\n${script}\n${ANSWERS}\n`, { mode: 0o755 });
  const rootDirectory = join(directory, 'root');
  runtime = podmanRuntime({
    rootDirectory,
    time: realTime,
    log: silentLog,
    hostIp: () => undefined,
    limits: LIMITS,
    program,
  });
  return runtime;
}

const calls = (command: string): readonly string[] =>
  existsSync(join(directory, 'calls'))
    ? readFileSync(join(directory, 'calls'), 'utf8')
        .split('\n')
        .filter((line) => line.startsWith(command))
    : [];

const stateWhen = (isIt: (state: ContainerState) => boolean): Promise<ContainerState> =>
  until(
    async () => {
      const state = (await runtime?.pods())?.[0]?.containers[0]?.state;
      return state !== undefined && isIt(state) ? state : undefined;
    },
    { withinMs: 30_000, everyMs: 20, what: 'the state' },
  );
const running = () => stateWhen(({ kind }) => kind === 'running');
const fault = () => stateWhen((state) => state.kind === 'waiting' && state.message !== undefined);

describe('a machine without podman', () => {
  it('is not ready, and says why', async () => {
    const options = {
      rootDirectory: directory,
      time: realTime,
      log: silentLog,
      hostIp: () => undefined,
      limits: LIMITS,
    };
    runtime = podmanRuntime({ ...options, program: 'no-such-podman' });
    expect(await runtime.health()).toMatchObject({ kind: 'notReady', reason: expect.stringMatching(/no-such-podman/) });
  });
});

describe('podman', () => {
  it('is asked for its version once per minute', async () => {
    const opened = open('[ "$1" != version ] || echo 4.3.1');
    expect([await opened.health(), await opened.health()]).toEqual([{ kind: 'ready' }, { kind: 'ready' }]);
    expect([opened.version, calls('version')]).toEqual(['podman://4.3.1', ['version --format {{.Client.Version}}']]);
  });

  it('creates a container with its limits, and shows its address', async () => {
    const opened = open();
    const own = { cpus: [2, 3], memoryNodes: [1], exclusive: false };
    opened.usePlacement?.(() => own);
    await opened.start(POD);
    await running();
    expect(calls('create')[0]).toContain(
      ' --cpu-shares 256 --cpu-period 100000 --cpu-quota 50000 --memory 2000000000 --memory-swap 2500000000' +
        ' --cpuset-cpus 2-3 --cpuset-mems 1 --pids-limit 64 --oom-score-adj 875 ',
    );
    expect(await opened.pods()).toMatchObject([
      { ip: '10.88.0.7', containers: [{ containerId: 'podman://0123abcd' }] },
    ]);
    opened.usePlacement?.(() => ({ ...own, cpus: [1] }));
    await until(() => calls('update').length === 1, { withinMs: 30_000, everyMs: 20, what: 'the update' });
    expect(calls('update')).toEqual([`update --cpuset-cpus 1 --cpuset-mems 1 nodekeeper-${UID}-main-0`]);
    expect(opened.limitWarning?.()).toBeUndefined();
  });

  it('changes the limits of a running container for a resize', async () => {
    const opened = open();
    await opened.start(POD);
    await running();
    const [main] = POD.spec?.containers ?? [];
    const resources = { requests: { cpu: '500m', memory: '1G' }, limits: { cpu: '1', memory: '3G' } };
    const resized = { ...POD, spec: { ...POD.spec, containers: [{ ...main, resources }] } };
    expect(await opened.resize?.(resized)).toEqual({ kind: 'applied' });
    expect(calls('update')).toEqual([
      'update --cpu-shares 512 --cpu-period 100000 --cpu-quota 100000 --memory 3000000000' +
        ` --memory-swap 3500000000 nodekeeper-${UID}-main-0`,
    ]);
  });

  it('reports limits that it cannot change, and the pod runs', async () => {
    const opened = open('[ "$1" != update ] || { echo "no such option" >&2; exit 125; }');
    await opened.start(POD);
    await running();
    opened.usePlacement?.(() => ({ cpus: [1], memoryNodes: [], exclusive: true }));
    const warning = await until(() => opened.limitWarning?.(), { withinMs: 30_000, everyMs: 20, what: 'a warning' });
    expect(warning).toMatch(/^podman cannot set limits of pods: .*no such option$/);
  });

  it('never gets a variable of a container that it would read itself', async () => {
    const copied = join(directory, 'copied');
    const copy =
      'previous=; for word; do [ "$previous" != --env-file ] || cp -p "$word" "$copied"; previous=$word; done';
    const opened = open(`copied=${copied}; ${copy}`);
    const variables = { PASSWORD: 'secret', LD_PRELOAD: '/none.so', https_proxy: 'http://me:secret@proxy.example' };
    opened.useInputs?.({
      inputsOf: () => ({ kind: 'ready', variables, mounts: [] }),
      readMissing: async () => undefined,
    });
    await opened.start(POD);
    await running();
    expect(calls('create')[0]).toMatch(/--env PASSWORD .*--env-file \S+\.env/);
    expect(calls('').join()).not.toContain('secret');
    const env = readFileSync(join(directory, 'env'), 'utf8');
    expect([env.includes('PASSWORD=secret'), env.includes('LD_PRELOAD')]).toEqual([true, false]);
    const filed = readFileSync(copied, 'utf8').split('\n');
    expect(filed).toEqual(
      expect.arrayContaining(['LD_PRELOAD=/none.so', 'https_proxy=http://me:secret@proxy.example']),
    );
    expect(statSync(copied).mode & 0o777).toBe(0o600);
    const names = readdirSync(join(directory, 'root'), { recursive: true, encoding: 'utf8' });
    expect(names.filter((name) => name.endsWith('.env'))).toEqual([]);
  });

  it.each(['--help', 'docker-archive:/etc/shadow', 'dir:/srv/image', 'Web:1', 'a b'])(
    'is not called with the image name %s',
    async (image) => {
      const spec = { containers: [{ name: 'main', image }] };
      await open().start({ ...POD, spec });
      expect(await stateWhen((one) => one.kind === 'waiting' && one.reason === 'InvalidImageName')).toMatchObject({
        message: expect.stringContaining(
          `couldn't parse image name ${JSON.stringify(image)}: invalid reference format`,
        ),
      });
      expect([...calls('image'), ...calls('pull'), ...calls('create')]).toEqual([]);
    },
  );

  /** `POD` with other fields of its container. */
  const podWith = (fields: Container): KubePod => ({
    ...POD,
    spec: { ...POD.spec, containers: [{ ...POD.spec?.containers?.[0], ...fields }] },
  });

  it.each<[string, Container]>([
    ['with the pull policy IfNotPresent', { image: 'registry.example/web:latest', imagePullPolicy: 'IfNotPresent' }],
    ['with the pull policy Never', { imagePullPolicy: 'Never' }],
    ['without a pull policy, and with a tag', {}],
    ['without a pull policy, and with a digest', { image: `registry.example/web@sha256:${'a'.repeat(64)}` }],
  ])('does not pull an image that is here, for a container %s', async (_which, fields) => {
    await open('[ "$1" != pull ] || { echo "no route to host" >&2; exit 125; }').start(podWith(fields));
    await running();
    expect(calls('pull')).toEqual([]);
    // podman would pull by itself otherwise.
    expect(calls('create')[0]).toContain(' --pull never ');
  });

  it.each<[string, Container]>([
    ['with the pull policy Always', { imagePullPolicy: 'Always' }],
    ['without a pull policy, and with the tag latest', { image: 'registry.example/web:latest' }],
    ['without a pull policy and a tag', { image: 'registry.example:5000/web' }],
  ])('waits for the registry although the image is here, for a container %s', async (_which, fields) => {
    const pod = podWith(fields);
    await open('[ "$1" != pull ] || { echo "no route to host" >&2; exit 125; }').start(pod);
    expect(await fault()).toEqual({
      kind: 'waiting',
      reason: 'ErrImagePull',
      message: expect.stringMatching(/podman pull --quiet: no route to host$/),
    });
    const [found] = (await runtime?.pods()) ?? [];
    const status = podStatusOf({ pod, running: found, before: {}, nowMs: 0, hostIp: undefined });
    expect(status.containerStatuses).toMatchObject([
      { state: { waiting: { reason: 'ErrImagePull', message: expect.stringMatching(/no route to host$/) } } },
    ]);
    expect([calls('pull').length > 0, calls('create')]).toEqual([true, []]);
  });

  it.each([
    ['Never', 'ErrImageNeverPull', 'Container image "registry.example/web:1" is not present with pull policy of Never'],
    ['IfNotPresent', 'ErrImagePull', expect.stringMatching(/podman pull --quiet: no route to host$/)],
  ] as const)('without the image waits, pull policy %s', async (imagePullPolicy, reason, message) => {
    const opened = open(`case "$1" in
      image) echo 'Error: registry.example/web:1: image not known' >&2; exit 125 ;;
      pull) echo 'no route to host' >&2; exit 125 ;;
    esac`);
    await opened.start(podWith({ imagePullPolicy }));
    expect(await fault()).toEqual({ kind: 'waiting', reason, message });
    expect(calls('create')).toEqual([]);
  });

  it('that cannot start a program ends the container with the reason', async () => {
    const opened = open('case "$1 $2" in start*-main-0) echo "not in PATH" >&2; exit 127 ;; esac');
    const pod = { ...POD, spec: { ...POD.spec, restartPolicy: 'Never' } };
    await opened.start(pod);
    expect(await stateWhen(({ kind }) => kind === 'terminated')).toMatchObject({
      exitCode: 127,
      reason: 'ContainerCannotRun',
      message: expect.stringMatching(/not in PATH$/),
    });
  });

  it('replaces a container that an interrupted start left behind', async () => {
    const opened = open(`if [ "$1" = create ] && ! grep -q ^rm ${'$'}{0%/*}/calls; then
      echo 'Error: the container name is already in use' >&2; exit 125; fi`);
    await opened.start(POD);
    await running();
    expect(calls('rm')).toEqual([`rm --force --ignore --time 0 nodekeeper-${UID}-main-0`]);
  });

  it('removes pods without a record, and those of no other directory', async () => {
    const ours = { 'nodekeeper.dev/pod-uid': 'old' };
    const others = { 'nodekeeper.dev/pod-uid': 'other', 'nodekeeper.dev/root-directory': '/elsewhere' };
    const listed = JSON.stringify([{ Labels: ours }, { Labels: others }]);
    open(`[ "$1 $2" != 'pod ps' ] || echo '${listed}'`);
    await until(() => calls('pod rm').length > 0, { withinMs: 30_000, everyMs: 20, what: 'a removal' });
    expect(calls('pod rm')).toEqual(['pod rm --force --ignore --time 0 nodekeeper-old']);
  });

  it('removes unused images when the disk is low', async () => {
    await open().reclaimStorage?.();
    expect(calls('image')).toEqual(['image prune --all --force']);
  });
});
