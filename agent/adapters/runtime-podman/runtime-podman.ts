/**
 * Runs pods with podman, which plays Kubernetes manifests itself: restarts, probes, limits and volumes are podman's. Each
 * call is a child process with a time limit. A pod's name in podman is its uid, because names of pods are unique only in
 * their namespace.
 */
import { spawn } from 'node:child_process';
import { listOf, numberOf, recordOf, recordsOf, textOf } from '../../../shared/kube/normal-form.ts';
import { parseTimeMs } from '../../../shared/kube/time.ts';
import type { KubeObject } from '../../../shared/kube/types.ts';
import type { Log } from '../../../shared/ports/log.ts';
import type { ContainerState, PodRuntime, RunningContainer, RunningPod } from '../../ports/pod-runtime.ts';
import type { AgentTime } from '../../ports/time.ts';

/** Images may have to be fetched. Milliseconds. */
const PLAY_MS = 600_000;
const QUERY_MS = 30_000;
/** How often podman is asked for changes. Milliseconds. */
const LOOK_MS = 5_000;
const OUTPUT_BYTES_MAX = 16 * 1024 * 1024;

const UID_LABEL = 'nodekeeper.dev/pod-uid';
const NAMESPACE_LABEL = 'nodekeeper.dev/pod-namespace';
const NAME_LABEL = 'nodekeeper.dev/pod-name';

export interface PodmanRuntimeOptions {
  readonly time: AgentTime;
  readonly log: Log;
  /** Of the program; podman on the PATH unless said. */
  readonly program?: string;
}

const podmanName = (podUid: string): string => `nodekeeper-${podUid}`;

/** The manifest as podman gets it. */
export function manifestOf(pod: KubeObject): KubeObject {
  const { uid = '', namespace = '', name = '', labels, annotations } = pod.metadata;
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: {
      name: podmanName(uid),
      labels: { ...labels, [UID_LABEL]: uid, [NAMESPACE_LABEL]: namespace, [NAME_LABEL]: name },
      ...(annotations === undefined ? {} : { annotations }),
    },
    spec: pod.spec ?? {},
  };
}

/** State of a container as `podman inspect` tells it. */
export function stateOf(inspected: Record<string, unknown>): ContainerState {
  const state = recordOf(inspected['State']);
  const startedAtMs = parseTimeMs(textOf(state['StartedAt'])) ?? 0;
  switch (state['Status']) {
    case 'running':
    case 'paused':
    case 'stopping':
      return { kind: 'running', startedAtMs };
    case 'exited':
    case 'stopped':
    case 'removing': {
      const exitCode = numberOf(state['ExitCode']) ?? 0;
      return {
        kind: 'terminated',
        exitCode,
        ...(exitCode > 128 ? { signal: exitCode - 128 } : {}),
        reason: state['OOMKilled'] === true ? 'OOMKilled' : exitCode === 0 ? 'Completed' : 'Error',
        startedAtMs,
        finishedAtMs: parseTimeMs(textOf(state['FinishedAt'])) ?? startedAtMs,
      };
    }
    default:
      return { kind: 'waiting', reason: 'ContainerCreating', message: textOf(state['Error']) };
  }
}

export function podmanRuntime({ time, log, program = 'podman' }: PodmanRuntimeOptions): PodRuntime {
  const listeners: ((podUid: string) => void)[] = [];
  const closed = new AbortController();
  let version = 'podman://unknown';

  /** Output of one call. @throws Error with what podman said, when it failed or took too long. */
  function call(args: readonly string[], timeoutMs: number, input = ''): Promise<string> {
    return new Promise((resolve, reject) => {
      const child = spawn(program, args, { timeout: timeoutMs, killSignal: 'SIGKILL' });
      let output = '';
      let complaint = '';
      child.stdout.setEncoding('utf8').on('data', (text: string) => {
        output += text;
        if (output.length > OUTPUT_BYTES_MAX) child.kill('SIGKILL');
      });
      child.stderr.setEncoding('utf8').on('data', (text: string) => {
        complaint = (complaint + text).slice(-2_000);
      });
      child.stdin.on('error', () => {
        // It ended without reading everything; its exit says why.
      });
      child.once('error', (cause) => reject(new Error(`${program}: ${cause.message}`, { cause })));
      child.once('close', (code, signal) => {
        if (code === 0) resolve(output);
        else reject(new Error(`${program} ${args[0]} ${args[1] ?? ''}: ${complaint.trim() || (signal ?? code)}`));
      });
      child.stdin.end(input);
    });
  }

  const json = async (args: readonly string[]): Promise<Record<string, unknown>[]> => {
    const text = await call(args, QUERY_MS);
    return recordsOf(text.trim() === '' ? [] : JSON.parse(text));
  };

  async function pods(): Promise<readonly RunningPod[]> {
    const found = await json(['pod', 'ps', '--format', 'json', '--filter', `label=${UID_LABEL}`]);
    return Promise.all(found.map(async (pod) => runningPod(textOf(pod['Name']), recordOf(pod['Labels']))));
  }

  async function runningPod(name: string, labels: Record<string, unknown>): Promise<RunningPod> {
    const [inspected] = await json(['pod', 'inspect', '--format', 'json', name]).then((list) =>
      list.length > 0 ? list : [{}],
    );
    const infra = textOf(inspected?.['InfraContainerID']);
    const ids = listOf(inspected?.['Containers'])
      .map((each) => textOf(recordOf(each)['Id']))
      .filter((id) => id !== '' && id !== infra);
    const containers = ids.length === 0 ? [] : await json(['container', 'inspect', '--format', 'json', ...ids]);
    return {
      uid: textOf(labels[UID_LABEL]),
      namespace: textOf(labels[NAMESPACE_LABEL]),
      name: textOf(labels[NAME_LABEL]),
      containers: containers.map(
        (each): RunningContainer => ({
          name: textOf(each['Name']).slice(name.length + 1),
          state: stateOf(each),
          restartCount: numberOf(each['RestartCount']) ?? 0,
          containerId: `podman://${textOf(each['Id'])}`,
        }),
      ),
    };
  }

  const exists = async (podUid: string): Promise<boolean> =>
    (await json(['pod', 'ps', '--format', 'json', '--filter', `label=${UID_LABEL}=${podUid}`])).length > 0;

  /** podman tells changes to nobody who does not wait for them: compared with what was seen last. */
  async function look(): Promise<void> {
    let seen = new Map<string, string>();
    while (!closed.signal.aborted) {
      await time.sleep(LOOK_MS, closed.signal);
      if (closed.signal.aborted) return;
      try {
        const now = new Map((await pods()).map((pod) => [pod.uid, JSON.stringify(pod)]));
        for (const uid of new Set([...seen.keys(), ...now.keys()])) {
          if (seen.get(uid) !== now.get(uid)) tell(uid);
        }
        seen = now;
      } catch (cause) {
        // health() says it to the node; here it only means that nothing is known to have changed.
        log.warn('podman did not tell its pods', { cause: String(cause) });
      }
    }
  }

  function tell(podUid: string): void {
    for (const listener of listeners) listener(podUid);
  }

  void look();

  return {
    get version() {
      return version;
    },
    async health() {
      try {
        version = `podman://${(await call(['version', '--format', '{{.Client.Version}}'], QUERY_MS)).trim()}`;
        return { kind: 'ready' };
      } catch (cause) {
        return { kind: 'notReady', reason: `container runtime is down: ${(cause as Error).message}` };
      }
    },
    async start(pod) {
      const uid = pod.metadata.uid ?? '';
      if (await exists(uid)) return;
      await call(['kube', 'play', '--start', '-'], PLAY_MS, JSON.stringify(manifestOf(pod)));
      tell(uid);
    },
    async stop(podUid, graceSeconds) {
      if (!(await exists(podUid))) return;
      const seconds = String(Math.ceil(graceSeconds));
      await call(['pod', 'stop', '--time', seconds, podmanName(podUid)], graceSeconds * 1_000 + QUERY_MS);
    },
    async remove(podUid) {
      if (!(await exists(podUid))) return;
      // What `kube down` does, without the manifest.
      await call(['pod', 'rm', podmanName(podUid)], QUERY_MS);
      tell(podUid);
    },
    pods,
    onChange(listener) {
      listeners.push(listener);
    },
    async close() {
      closed.abort();
    },
  };
}
