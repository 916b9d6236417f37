/**
 * nodekeeper-agent plan shutdown|limits|swap|topology --config FILE --pods FILE [--json]
 *
 * Prints what this node would do with these pods, and does none of it.
 */
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { KUBERNETES_YAML, readYaml } from '../../shared/config/yaml-documents.ts';
import { defined } from '../../shared/defined.ts';
import { podQosClass } from '../../shared/kinds/pods/pod-needs.ts';
import type { KubeObject } from '../../shared/kinds/types.ts';
import { parseQuantity } from '../../shared/kubernetes/quantity.ts';
import { findCgroupDirectory } from '../adapters/cgroup/find-tree.ts';
import { hostSystem } from '../adapters/config/host-system.ts';
import { countCpuList } from '../adapters/linux-machine/proc-text.ts';
import { NumaUnreadableError, readNuma } from '../adapters/numa/numa.ts';
import type { MountMode } from '../adapters/runtime-exec/isolation.ts';
import type { AgentConfig } from '../config.ts';
import { type ConfigFault, checkConfig, describeConfigFault } from '../rules/config-settings.ts';
import { isCriticalPod } from '../rules/critical-pod.ts';
import { podsOf } from '../rules/pod-manifest.ts';
import { shutdownPlan } from '../rules/shutdown-plan.ts';
import { shutdownBuckets } from '../rules/shutdown-settings.ts';
import { type SwapLimit, type SwapNode, swapLimits } from '../rules/swap.ts';
import { admitTopology } from '../rules/topology/admission.ts';
import type { Hint } from '../rules/topology/hint.ts';
import { EMPTY_LEDGER, grantOf, podUidOf } from '../rules/topology/ledger.ts';
import { nodeIdsOf } from '../rules/topology/mask.ts';
import { startTopology } from '../rules/topology/options.ts';
import { cpuProvider, memoryProvider } from '../rules/topology/providers.ts';
import { limitPlan, limitPlanLines } from './plan-limits.ts';

export interface PlanIo {
  /** Text of a file; throws as readFileSync does. */
  readonly readText: (path: string) => string;
  readonly hostname: () => string;
  /** Prints one line. */
  readonly print: (line: string) => void;
  readonly printError: (line: string) => void;
  /** How this machine shows volumes to processes. Absent: it is not printed. */
  readonly mountMode?: () => MountMode;
}

const USAGE = `Usage: nodekeeper-agent plan shutdown|limits|swap|topology --config FILE --pods FILE [--json]

  shutdown   when each pod is terminated, and its grace period, in a shutdown of the machine
  limits     what the runtime exec writes to control groups, and which limits this machine cannot enforce
  swap       how much swap each container may use
  topology   which pods are admitted by the topology manager, and on which NUMA nodes

  --config FILE   KubeletConfiguration and AgentConfiguration
  --pods FILE     Pods, as documents of one YAML or JSON file or as a List; with the PriorityClasses they name,
                  if these are not the system's
  --json          as JSON
  --root DIR      where /proc and /sys of the machine are (/)
  --memory SIZE   instead of the machine's memory, such as 40Gi (limits, swap)
  --swap SIZE     instead of the machine's swap, such as 5Gi (limits, swap)
  --cgroup N      instead of the machine's cgroup version, 1 or 2, with a swap controller (swap)

Defaults, priority and QoS class are set as the API sets them. Pods with a uid stay unchanged.`;

const WRONG = 2;

/** The input cannot be used. Each line says where it is wrong. */
class PlanInputError extends Error {
  override readonly name = 'PlanInputError';
  readonly lines: readonly string[];
  constructor(lines: readonly string[]) {
    super(lines.join('\n'));
    this.lines = lines;
  }
}

/** @param argv the arguments after `plan`. Returns the exit code: 0, or 2 for wrong input. */
export async function plan(argv: readonly string[], io: PlanIo): Promise<number> {
  try {
    const input = readCommandLine(argv);
    if (input === 'help') {
      io.print(USAGE);
      return 0;
    }
    const { value, lines } = await PLANS[input.what](input, io);
    if (input.json) io.print(JSON.stringify(value, undefined, 2));
    else for (const line of lines) io.print(line);
    return 0;
  } catch (error) {
    if (!(error instanceof PlanInputError)) throw error;
    for (const line of error.lines) io.printError(line);
    return WRONG;
  }
}

interface PlanArguments {
  readonly what: keyof typeof PLANS;
  readonly config: string;
  readonly pods: string;
  readonly json: boolean;
  readonly root: string;
  readonly memory: string | undefined;
  readonly swap: string | undefined;
  readonly cgroup: string | undefined;
}

interface PlanOutput {
  readonly value: unknown;
  readonly lines: readonly string[];
}

const PLANS = { shutdown: planShutdown, limits: planLimits, swap: planSwap, topology: planTopology };

function readCommandLine(argv: readonly string[]): PlanArguments | 'help' {
  const text = { type: 'string' } as const;
  const options = { config: text, pods: text, root: text, memory: text, swap: text, cgroup: text } as const;
  const flags = { json: { type: 'boolean' }, help: { type: 'boolean', short: 'h' } } as const;
  try {
    const parsed = parseArgs({ args: [...argv], options: { ...options, ...flags }, allowPositionals: true });
    const { values, positionals } = parsed;
    if (values.help) return 'help';
    const [what = '', ...rest] = positionals;
    if (!Object.hasOwn(PLANS, what) || rest.length > 0)
      throw new TypeError('expected one of shutdown, limits, swap, topology');
    if (values.config === undefined || values.pods === undefined) throw new TypeError('--config and --pods are needed');
    return {
      what: what as keyof typeof PLANS,
      config: values.config,
      pods: values.pods,
      json: values.json ?? false,
      root: values.root ?? '/',
      memory: values.memory,
      swap: values.swap,
      cgroup: values.cgroup,
    };
  } catch (error) {
    if (!(error instanceof TypeError)) throw error;
    throw new PlanInputError([error.message, '', USAGE]);
  }
}

function documentsOf(path: string, io: PlanIo) {
  let text: string;
  try {
    text = io.readText(path);
  } catch (error) {
    throw new PlanInputError([`${path} cannot be read: ${error instanceof Error ? error.message : error}`]);
  }
  const read = readYaml(text, path, KUBERNETES_YAML);
  if (read.kind === 'malformed') throw new PlanInputError(read.faults.map(describeConfigFault));
  return read.documents;
}

const refuse = (faults: readonly ConfigFault[]): void => {
  if (faults.length > 0) throw new PlanInputError(faults.map(describeConfigFault));
};

/** No request is sent: the endpoint may be missing, and no token is read. */
function configOf({ config: path }: PlanArguments, io: PlanIo): AgentConfig {
  const flags = { endpoint: 'https://endpoint.invalid' };
  const checked = checkConfig({ documents: documentsOf(path, io), flags, hostname: io.hostname(), system: hostSystem });
  refuse(checked.faults);
  return checked.config;
}

function readPods({ pods: path }: PlanArguments, io: PlanIo): readonly KubeObject[] {
  const { pods, faults } = podsOf(documentsOf(path, io));
  refuse(faults);
  return pods;
}

/** Reports the faults of both files at once. */
function inputsOf(input: PlanArguments, io: PlanIo): { config: AgentConfig; pods: readonly KubeObject[] } {
  const lines: string[] = [];
  const attempt = <T>(read: (input: PlanArguments, io: PlanIo) => T): T | undefined => {
    try {
      return read(input, io);
    } catch (error) {
      if (!(error instanceof PlanInputError)) throw error;
      lines.push(...error.lines);
      return undefined;
    }
  };
  const config = attempt(configOf);
  const pods = attempt(readPods);
  if (config === undefined || pods === undefined) throw new PlanInputError(lines);
  return { config, pods };
}

const nameOf = ({ metadata }: KubeObject): string => `${metadata.namespace ?? 'default'}/${metadata.name}`;

async function planShutdown(input: PlanArguments, io: PlanIo): Promise<PlanOutput> {
  const { config, pods } = inputsOf(input, io);
  const buckets = shutdownBuckets(config);
  const value = shutdownPlan(buckets, pods);
  if (buckets.length === 0)
    return { value, lines: ['Graceful shutdown is off: the system terminates the pods without an order.'] };
  const lines = [
    `Requested shutdown delay: ${value.requestedSeconds} s. These pods need ${value.longestSeconds} s at most.`,
  ];
  for (const { priority, periodSeconds, beginsAtSeconds, pods: members } of value.phases) {
    lines.push(
      members.length === 0
        ? `priority ${priority}, ${periodSeconds} s: no pods, skipped`
        : `priority ${priority}, ${periodSeconds} s, begins after ${beginsAtSeconds} s at the latest:`,
      ...members.map((pod) => `  ${pod.namespace}/${pod.name}  priority ${pod.priority}  grace ${pod.graceSeconds} s`),
    );
  }
  return { value, lines };
}

/** Bytes of a field of /proc/meminfo, unless a flag overrides it. */
function machineBytes(
  flag: string,
  value: string | undefined,
  field: string,
  { root }: PlanArguments,
  io: PlanIo,
): number {
  if (value !== undefined) {
    const parsed = parseQuantity(value);
    if (parsed.kind !== 'parsed' || parsed.quantity.nanos < 0n) {
      throw new PlanInputError([`${flag}: expected a quantity such as 40Gi, found ${JSON.stringify(value)}`]);
    }
    return Number(parsed.quantity.nanos / 1_000_000_000n);
  }
  const path = join(root, 'proc/meminfo');
  try {
    const kibibytes = new RegExp(`^${field}:\\s+(\\d+) kB`, 'm').exec(io.readText(path))?.[1];
    if (kibibytes !== undefined) return Number(kibibytes) * 1_024;
  } catch (error) {
    throw new PlanInputError([
      `${path} cannot be read; pass ${flag}: ${error instanceof Error ? error.message : error}`,
    ]);
  }
  throw new PlanInputError([`${path} has no ${field}; pass ${flag}`]);
}

/** Undefined if it cannot be read, for any reason. */
function textAt(path: string, io: PlanIo): string | undefined {
  try {
    return io.readText(path);
  } catch {
    return undefined;
  }
}

/**
 * The cgroup version that limits swap here, and whether it can: without CONFIG_MEMCG_SWAP there is no file to write to.
 * Source: swapControllerAvailable in pkg/kubelet/kuberuntime/kuberuntime_container_linux.go.
 */
function swapCgroup(
  { root, cgroup }: PlanArguments,
  io: PlanIo,
): Pick<SwapNode, 'cgroupVersion' | 'controllerPresent'> {
  if (cgroup !== undefined) {
    if (cgroup !== '1' && cgroup !== '2') {
      throw new PlanInputError([`--cgroup: expected 1 or 2, found ${JSON.stringify(cgroup)}`]);
    }
    return { cgroupVersion: cgroup === '1' ? 1 : 2, controllerPresent: true };
  }
  const isThere = (...path: string[]): boolean => textAt(join(root, 'sys/fs/cgroup', ...path), io) !== undefined;
  if (isThere('cgroup.controllers')) {
    // The root cgroup has no such file, so the process checks its own cgroup.
    const own = /^0::(.*)$/m.exec(textAt(join(root, 'proc/self/cgroup'), io) ?? '')?.[1] ?? '/';
    return { cgroupVersion: 2, controllerPresent: isThere(own, 'memory.swap.max') };
  }
  if (isThere('memory', 'memory.limit_in_bytes')) {
    return { cgroupVersion: 1, controllerPresent: isThere('memory', 'memory.memsw.limit_in_bytes') };
  }
  throw new PlanInputError([`${join(root, 'sys/fs/cgroup')} has no readable memory cgroup; pass --cgroup`]);
}

function limitText(limit: SwapLimit): string {
  switch (limit.kind) {
    case 'unset':
      return 'not written';
    case 'swapMax':
      return `memory.swap.max ${limit.bytes}`;
    case 'memoryAndSwap':
      return `memory and swap ${limit.bytes}`;
  }
}

const cgroupText = ({ cgroupVersion, controllerPresent }: SwapNode): string =>
  `cgroup v${cgroupVersion}${controllerPresent ? '' : ' without a swap controller'}`;

const VOLUME_LINES: Readonly<Record<MountMode, string>> = {
  mounts: 'volumes by mounts, in a mount namespace of each container',
  links: 'volumes by links at their mount paths: this process may not create mount namespaces',
};

async function planLimits(input: PlanArguments, io: PlanIo): Promise<PlanOutput> {
  const { config, pods } = inputsOf(input, io);
  const { root } = input;
  const textIn = (path: string): string | undefined => textAt(path, io);
  const numberIn = (path: string): number => Number(textIn(join(root, path)) ?? Number.NaN);
  const pidsMax = Math.min(numberIn('proc/sys/kernel/pid_max'), numberIn('proc/sys/kernel/threads-max'));
  const online = textIn(join(root, 'sys/devices/system/cpu/online'));
  if (online === undefined) throw new PlanInputError([`${join(root, 'sys/devices/system/cpu/online')} cannot be read`]);
  const value = limitPlan(config, pods, {
    found: findCgroupDirectory({ fileRoot: root, cgroupRoot: config.cgroupRoot, textAt: textIn }),
    cpuCores: countCpuList(online.trim()),
    memoryBytes: machineBytes('--memory', input.memory, 'MemTotal', input, io),
    swapBytes: machineBytes('--swap', input.swap, 'SwapTotal', input, io),
    pidsMax: Number.isNaN(pidsMax) ? undefined : pidsMax,
  });
  // The files of another machine do not say what this process may do there.
  const mode = root === '/' && config.runtime === 'exec' ? io.mountMode?.() : undefined;
  const volumes = mode === undefined ? [] : [VOLUME_LINES[mode]];
  return { value: { ...value, ...defined({ volumes: mode }) }, lines: [...limitPlanLines(value), ...volumes] };
}

async function planSwap(input: PlanArguments, io: PlanIo): Promise<PlanOutput> {
  const { config, pods } = inputsOf(input, io);
  const memoryBytes = machineBytes('--memory', input.memory, 'MemTotal', input, io);
  const swapBytes = machineBytes('--swap', input.swap, 'SwapTotal', input, io);
  const { swapBehavior } = config;
  const node: SwapNode = { ...swapCgroup(input, io), swapBehavior, memoryBytes, swapBytes };
  const value = {
    memoryBytes,
    swapBytes,
    cgroupVersion: node.cgroupVersion,
    swapController: node.controllerPresent,
    swapBehavior: swapBehavior || 'NoSwap',
    pods: pods.map((pod) => ({
      namespace: pod.metadata.namespace ?? 'default',
      name: pod.metadata.name,
      qosClass: podQosClass(pod),
      critical: isCriticalPod(pod),
      containers: [...swapLimits(node, pod)].map(([name, limit]) => ({ name, ...limit })),
    })),
  };
  const lines = [
    `${value.swapBehavior}: ${swapBytes} bytes of swap beside ${memoryBytes} bytes of memory, ${cgroupText(node)}`,
    ...value.pods.flatMap((pod) => [
      `${pod.namespace}/${pod.name}  ${pod.qosClass}${pod.critical ? ', critical' : ''}`,
      ...pod.containers.map((container) => `  ${container.name}  ${limitText(container)}`),
    ]),
  ];
  return { value, lines };
}

const hintValue = ({ mask, preferred }: Hint) => ({
  ...(mask === undefined ? {} : { numaNodes: nodeIdsOf(mask) }),
  preferred,
});
const hintText = ({ mask, preferred }: Hint): string =>
  `${mask === undefined ? 'any NUMA node' : `NUMA node ${nodeIdsOf(mask).join(',')}`}${preferred ? '' : ' (not preferred)'}`;

async function planTopology(input: PlanArguments, io: PlanIo): Promise<PlanOutput> {
  const { config, pods } = inputsOf(input, io);
  const { nodes, distances } = await readNuma(input.root).catch((error: unknown) => {
    throw error instanceof NumaUnreadableError ? new PlanInputError([error.message]) : error;
  });
  const start = startTopology({
    policy: config.topologyManagerPolicy,
    scope: config.topologyManagerScope,
    options: config.topologyManagerPolicyOptions,
    nodeIds: nodes.map(({ id }) => id),
    distances,
  });
  if (start.kind === 'refused') throw new PlanInputError([`topologyManagerPolicy: ${start.message}`]);
  const settings = start.kind === 'on' ? start.settings : undefined;
  const providers = settings === undefined ? [] : [cpuProvider(nodes), memoryProvider(nodes)];
  let ledger = EMPTY_LEDGER;
  const placed = pods.map((pod) => {
    const outcome = admitTopology(settings, providers, ledger, pod);
    const name = { namespace: pod.metadata.namespace ?? 'default', name: pod.metadata.name ?? '' };
    if (outcome.kind === 'refused') {
      const { reason, message, hint } = outcome;
      const lines = [
        `${nameOf(pod)}  refused: ${reason}: ${message}${hint === undefined ? '' : `; best: ${hintText(hint)}`}`,
      ];
      const best = hint === undefined ? {} : { hint: hintValue(hint) };
      return { lines, value: { ...name, admitted: false, reason, message, ...best } };
    }
    ledger = outcome.state;
    const containers = [...outcome.hints].map(([container, hint]) => ({
      container,
      hint,
      cpus: grantOf(ledger, podUidOf(pod), container)?.cpus ?? [],
    }));
    return {
      lines: [
        `${nameOf(pod)}  admitted`,
        ...containers.map(
          ({ container, hint, cpus }) =>
            `  ${container}  ${hintText(hint)}${cpus.length === 0 ? '' : `, cpus ${cpus.join(',')}`}`,
        ),
      ],
      value: {
        ...name,
        admitted: true,
        containers: containers.map(({ container, hint, cpus }) => ({ name: container, hint: hintValue(hint), cpus })),
      },
    };
  });
  const { topologyManagerPolicy: policy, topologyManagerScope: scope } = config;
  return {
    value: { policy, scope, numaNodes: nodes.map(({ id }) => id), pods: placed.map(({ value }) => value) },
    lines: [
      `${policy}, scope ${scope}, ${nodes.length} NUMA ${nodes.length === 1 ? 'node' : 'nodes'}`,
      ...placed.flatMap(({ lines }) => lines),
    ],
  };
}
