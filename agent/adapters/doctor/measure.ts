/** Measurements for `nodekeeper-agent doctor`. None of them changes anything, and none rejects. */
import { get } from 'node:http';
import { defined } from '../../../shared/defined.ts';
import { isJsonObject } from '../../../shared/kubernetes/json.ts';
import { recordOf, recordsOf } from '../../../shared/kubernetes/normal-form.ts';
import type { AgentConfig } from '../../config.ts';
import type {
  AgentReading,
  CgroupReading,
  DiskReading,
  EndpointReading,
  KeyReading,
  RuntimeReading,
  ShutdownReading,
  TokenReading,
} from '../../rules/doctor.ts';
import type { VolumeLimitReading } from '../../rules/doctor-volumes.ts';
import { describeAnswer } from '../../rules/kube-answer.ts';
import { nodePath } from '../../rules/lease.ts';
import { type CgroupPlace, findCgroupDirectory, WANTED_CONTROLLERS } from '../cgroup/find-tree.ts';
import { writeFault } from '../cgroup/unified-tree.ts';
import { createHttpKubeApi } from '../http/kube-api.ts';
import type { ProxyEnvironment } from '../http/proxy-choice.ts';
import { readEnrolment } from '../identity/enrolment-file.ts';
import { presentMachineKey } from '../identity/key-file.ts';
import { createNodeIdentity } from '../identity/node-identity.ts';
import { logind } from '../logind/logind.ts';
import { mountMode } from '../runtime-exec/isolation.ts';
import { access, statfs, W_OK } from '../system/files.ts';
import { runProgram } from '../system/run-program.ts';
import { systemTime } from '../system/time.ts';
import { claimsRoot } from '../volumes/claim-directories.ts';
import { projectQuotas } from '../volumes/project-quota.ts';
import { ANSWER_BYTES_MAX, askServer, NETWORK_MS } from './ask-server.ts';

const BOUNDS = { timeoutMs: 10_000, outputBytesMax: ANSWER_BYTES_MAX };

const silent = { debug() {}, info() {}, warn() {}, error() {} };
const textOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));

/** The version of the API, without a token. */
export async function readEndpoint(
  { endpoint, certificateAuthority }: Pick<AgentConfig, 'endpoint' | 'certificateAuthority'>,
  environment: ProxyEnvironment,
): Promise<EndpointReading> {
  const answer = await askServer({ endpoint, path: '/version', certificateAuthority, environment });
  if (answer.kind === 'failed') return answer;
  const { body } = answer;
  return { ...answer, serverVersion: isJsonObject(body) ? String(body['gitVersion'] ?? 'unknown') : 'unknown' };
}

export async function readKey({
  token,
  bootstrapToken,
  rootDirectory,
}: Pick<AgentConfig, 'token' | 'bootstrapToken' | 'rootDirectory'>): Promise<KeyReading> {
  if (token !== undefined) return { kind: 'token' };
  try {
    if ((await presentMachineKey(rootDirectory)) === undefined) {
      return { kind: 'none', hasBootstrapToken: bootstrapToken !== undefined };
    }
    return { kind: 'key', isEnrolled: (await readEnrolment(rootDirectory)) !== undefined };
  } catch (error) {
    return { kind: 'unusable', message: textOf(error) };
  }
}

/** Reads the own Node. A machine that is not enrolled is not enrolled by this either. */
export async function readToken(
  config: AgentConfig,
  key: KeyReading,
  environment: ProxyEnvironment,
): Promise<TokenReading> {
  if (key.kind !== 'token' && !(key.kind === 'key' && key.isEnrolled)) return undefined;
  const { bootstrapToken: _unused, ...known } = config;
  const credentials = createNodeIdentity(known, { time: systemTime, log: silent });
  const api = createHttpKubeApi({
    endpoint: config.endpoint,
    certificateAuthority: config.certificateAuthority,
    credentials,
    environment,
    timeoutMs: NETWORK_MS,
  });
  try {
    const answer = await api.send({ method: 'GET', path: nodePath(config.nodeName) });
    const { status, body } = answer.kind === 'answered' ? answer : { status: 0, body: undefined };
    return { status, message: describeAnswer(answer), ...defined({ readyMessage: readyMessageOf(body) }) };
  } finally {
    api.close();
  }
}

function readyMessageOf(node: unknown): string | undefined {
  const conditions = recordsOf(recordOf(recordOf(node)['status'])['conditions']);
  const ready = conditions.find(({ type }) => type === 'Ready');
  return ready === undefined ? undefined : String(ready['message']);
}

export async function readShutdown(busAddress: string | undefined): Promise<ShutdownReading> {
  const manager = logind({ log: silent, ...defined({ busAddress }) });
  try {
    return { kind: 'logind', delayMaxMs: await manager.delayMaxMs() };
  } catch (error) {
    return { kind: 'failed', message: textOf(error) };
  } finally {
    manager.close();
  }
}

export function readCgroups(place: CgroupPlace): CgroupReading {
  const found = findCgroupDirectory(place);
  if (found.kind === 'missing') return found;
  const { directory, controllers } = found;
  const missing = WANTED_CONTROLLERS.filter((controller) => !controllers.includes(controller));
  return { kind: 'found', directory, missing, ...defined({ fault: writeFault(directory) }) };
}

export async function readDisk(rootDirectory: string): Promise<DiskReading> {
  try {
    await access(rootDirectory, W_OK);
    const { bavail, blocks, bsize } = await statfs(rootDirectory);
    return { kind: 'measured', availableBytes: bavail * bsize, capacityBytes: blocks * bsize };
  } catch (error) {
    return { kind: 'failed', message: textOf(error) };
  }
}

/** Undefined: a machine without a runtime makes no volumes. */
export async function readVolumeLimits(
  { rootDirectory, runtime }: Pick<AgentConfig, 'rootDirectory' | 'runtime'>,
  quotas = projectQuotas(),
): Promise<VolumeLimitReading | undefined> {
  if (runtime === 'none') return undefined;
  const claims = claimsRoot(rootDirectory);
  try {
    const directory = await access(claims).then(
      () => claims,
      () => rootDirectory,
    );
    return (await quotas.fault(directory)) ?? { kind: 'limited' };
  } catch (error) {
    return { kind: 'none', why: textOf(error), todo: 'Repair that, and repeat this.' };
  }
}

export async function readRuntime(runtime: AgentConfig['runtime']): Promise<RuntimeReading> {
  if (runtime === 'none') return { kind: 'none' };
  if (runtime === 'exec') return { kind: 'exec', mounts: mountMode() };
  try {
    const version = await runProgram('podman', ['version', '--format', '{{.Client.Version}}'], BOUNDS);
    return { kind: 'podman', version: version.trim(), message: '' };
  } catch (error) {
    return { kind: 'podman', version: undefined, message: textOf(error) };
  }
}

/** The health of the running agent. */
export function readAgent(healthzPort: number): Promise<AgentReading> {
  if (healthzPort === 0) return Promise.resolve({ kind: 'unknown' });
  return new Promise((resolve) => {
    const outgoing = get(`http://127.0.0.1:${healthzPort}/healthz`, (incoming) => {
      let text = '';
      incoming.setEncoding('utf8').on('data', (piece: string) => {
        if (text.length < ANSWER_BYTES_MAX) text += piece;
      });
      incoming.once('end', () =>
        resolve(
          incoming.statusCode === 200
            ? { kind: 'healthy' }
            : { kind: 'unhealthy', message: text.slice(0, ANSWER_BYTES_MAX).trim() },
        ),
      );
      incoming.once('error', fail);
    });
    const fail = (error: Error): void => resolve({ kind: 'absent', message: error.message });
    setTimeout(() => outgoing.destroy(new Error(`no answer in ${NETWORK_MS} ms`)), NETWORK_MS).unref();
    outgoing.once('error', fail);
  });
}
