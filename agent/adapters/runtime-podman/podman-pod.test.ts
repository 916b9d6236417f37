import { describe, expect, it } from 'vitest';
import type { KubePod } from '../../../shared/kinds/types.ts';
import { podmanPodOptions } from '../../rules/podman-pod.ts';
import type { PodProcesses } from '../runtime-exec/pod-processes.ts';
import { type PodmanCli, PodmanError } from './podman-cli.ts';
import { PodmanPod, podmanImage, podmanPodUids, removePodmanPod } from './podman-pod.ts';

const ROOT = '/var/lib/nodekeeper';
const UID = 'uid-1';

/** Each call is noted. One that begins with these words fails with a text, or returns this JSON. */
function podman(answers: Record<string, string | readonly Record<string, unknown>[]> = {}) {
  const calls: string[] = [];
  const answer = async (args: readonly string[]) => {
    calls.push(args.join(' '));
    const found = Object.entries(answers).find(([words]) => args.join(' ').startsWith(words))?.[1];
    if (typeof found === 'string') throw new PodmanError(found, 125);
    return found ?? [];
  };
  return { calls, answers, program: { program: 'podman', run: answer, json: answer } as unknown as PodmanCli };
}

function podOf(program: PodmanCli, spec: KubePod['spec'] = { containers: [] }) {
  const pod: KubePod = { metadata: { namespace: 'd', name: 'web', uid: UID }, spec };
  const record: { podIp?: string } = {};
  const changes: unknown[] = [];
  const changed = (): void => void changes.push(record.podIp);
  const made = new PodmanPod(program, { pod, uid: UID, record, changed } as unknown as PodProcesses, ROOT);
  return { made, pod, record, changes };
}

const create = (pod: KubePod): string => `pod create ${podmanPodOptions(pod, ROOT).join(' ')}`;
const START = `start nodekeeper-${UID}-infra`;
const INSPECT = `container inspect nodekeeper-${UID}-infra`;

describe('a pod of podman', () => {
  it.each([
    [{ IPAddress: '10.88.0.2', GlobalIPv6Address: 'fd00::2' }, '10.88.0.2'],
    [{ IPAddress: '', GlobalIPv6Address: 'fd00::2' }, 'fd00::2'],
    [{ IPAddress: '', Networks: { a: { IPAddress: '' }, b: { IPAddress: '10.89.0.2' } } }, '10.89.0.2'],
    [{}, ''],
  ])('with the settings %j has the address "%s"', async (settings, address) => {
    const { program, calls } = podman({ [INSPECT]: [{ NetworkSettings: settings }] });
    const { made, pod, record, changes } = podOf(program);
    expect(record.podIp).toBe('');
    await made.ensure();
    await made.ensure();
    expect(changes).toEqual([address]);
    expect(calls).toEqual([create(pod), START, INSPECT]);
  });

  it('in the network of the machine has no address of its own', async () => {
    const { program, calls } = podman();
    const { made, pod, record } = podOf(program, { containers: [], hostNetwork: true });
    await made.ensure();
    expect([calls, record]).toEqual([[create(pod), START], {}]);
  });

  it.each(['pod already exists', 'name "x" is already in use'])(
    'that was created before is started: %s',
    async (text) => {
      const { program, calls } = podman({ 'pod create': text });
      await podOf(program).made.ensure();
      expect(calls).toContain(START);
    },
  );

  it.each(['pod create', 'start'])('is created anew after a failed call of %s, and after its end', async (words) => {
    const { program, calls, answers } = podman({ [words]: 'no space left' });
    const { made, pod } = podOf(program);
    await expect(made.ensure()).rejects.toThrow('no space left');
    delete answers[words];
    await made.ensure();
    calls.length = 0;
    await made.stop();
    await made.ensure();
    expect(calls).toEqual([`pod stop --ignore --time 0 nodekeeper-${UID}`, create(pod), START, INSPECT]);
  });

  it('is one of this root directory, or of no named one', async () => {
    const labels = (uid: string, root?: string) => ({
      Labels: { 'nodekeeper.dev/pod-uid': uid, ...(root !== undefined && { 'nodekeeper.dev/root-directory': root }) },
    });
    const { program, calls } = podman({ 'pod ps': [labels('a', ROOT), labels('b', '/other'), labels('c')] });
    expect(await podmanPodUids(program, ROOT)).toEqual(['a', 'c']);
    expect(calls).toEqual(['pod ps --format json --filter label=nodekeeper.dev/pod-uid']);
  });

  it('is removed with its containers', async () => {
    const { program, calls } = podman();
    await removePodmanPod(program, UID);
    expect(calls).toEqual([`pod rm --force --ignore --time 0 nodekeeper-${UID}`]);
  });
});

it('an image has a user and a signal, or is absent; another fault is thrown', async () => {
  const found = (answer: string | readonly Record<string, unknown>[]) =>
    podmanImage(podman({ 'image inspect --format json app:1': answer }).program, 'app:1');
  expect(await found([{ Config: { User: '7', StopSignal: 'SIGINT' } }])).toEqual({ user: '7', stopSignal: 'SIGINT' });
  expect(await found([])).toEqual({ user: '', stopSignal: '' });
  for (const text of ['app:1: image not known', 'No such image']) expect(await found(text)).toBeUndefined();
  await expect(found('permission denied')).rejects.toThrow('permission denied');
});
