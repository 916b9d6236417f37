/** `plan limits`: what the runtime exec writes to control groups for these pods. Changes nothing. */
import { podQosClass } from '../../shared/kinds/pods/pod-needs.ts';
import type { KubeObject, KubePod } from '../../shared/kinds/types.ts';
import { type FoundDirectory, limitWarning, WANTED_CONTROLLERS } from '../adapters/cgroup/find-tree.ts';
import { cgroupNode } from '../adapters/cgroup/open-pod-cgroups.ts';
import type { AgentConfig } from '../config.ts';
import {
  ALL_PODS,
  ANYWHERE,
  allPodsFiles,
  type CgroupFiles,
  containerFiles,
  memoryLimitBytes,
  oomScoreAdjust,
  podCgroup,
  podFiles,
  qosFiles,
} from '../rules/cgroup-values.ts';
import { type Container, containersOf } from '../rules/pod-containers.ts';

export interface PlannedMachine {
  readonly found: FoundDirectory;
  readonly cpuCores: number;
  readonly memoryBytes: number;
  readonly swapBytes: number;
  /** Undefined if it cannot be read. */
  readonly pidsMax: number | undefined;
}

interface PlannedGroup {
  readonly path: string;
  readonly files: CgroupFiles;
  /** Files of missing controllers. */
  readonly notWritten: CgroupFiles;
}

interface PlannedContainer extends PlannedGroup {
  readonly name: string;
  readonly oomScoreAdjust: number;
  /** RLIMIT_DATA of each process, where the controller memory is missing. */
  readonly dataBytesMax?: number;
}

export interface LimitPlan {
  readonly directory: string | undefined;
  readonly controllers: readonly string[];
  readonly warning: string | undefined;
  readonly groups: readonly PlannedGroup[];
  readonly pods: readonly {
    readonly namespace: string;
    readonly name: string;
    readonly qosClass: string;
    readonly group: PlannedGroup;
    readonly containers: readonly PlannedContainer[];
  }[];
}

/** Stands for the uid of a pod that is not stored yet. */
const UNKNOWN_UID = '<uid>';

export function limitPlan(config: AgentConfig, pods: readonly KubeObject[], machine: PlannedMachine): LimitPlan {
  const { found } = machine;
  const controllers =
    found.kind === 'found' ? WANTED_CONTROLLERS.filter((each) => found.controllers.includes(each)) : [];
  const split = (path: string, files: CgroupFiles): PlannedGroup => {
    const set = Object.entries(files).filter(([, text]) => text !== '');
    const isWritten = ([file]: [string, string]): boolean => controllers.some((each) => file.startsWith(`${each}.`));
    return {
      path,
      files: Object.fromEntries(set.filter(isWritten)),
      notWritten: Object.fromEntries(set.filter((each) => !isWritten(each))),
    };
  };
  const node = cgroupNode(config, machine, controllers.includes('memory'));
  const stored = pods.map(
    (pod): KubePod => ({ ...pod, metadata: { ...pod.metadata, uid: pod.metadata.uid ?? UNKNOWN_UID } }),
  );
  const planned = (pod: KubePod, container: Container): PlannedContainer => {
    const limit = memoryLimitBytes(container);
    return {
      name: container.name,
      ...split(`${podCgroup(pod)}/${container.name}.0`, containerFiles(node, pod, container, ANYWHERE)),
      oomScoreAdjust: oomScoreAdjust(pod, container, machine.memoryBytes),
      ...(limit > 0 && !controllers.includes('memory') ? { dataBytesMax: limit } : {}),
    };
  };
  return {
    directory: found.kind === 'found' ? found.directory : undefined,
    controllers,
    warning:
      found.kind === 'found' ? limitWarning({ controllers: new Set(controllers) }) : limitWarning(undefined, found.why),
    groups: [
      split(ALL_PODS, allPodsFiles(allocatableOf(config, machine))),
      ...Object.entries(qosFiles(stored)).map(([name, files]) => split(`${ALL_PODS}/${name}`, files)),
    ],
    pods: stored.map((pod) => ({
      namespace: pod.metadata.namespace ?? 'default',
      name: pod.metadata.name ?? '',
      qosClass: podQosClass(pod),
      group: split(podCgroup(pod), podFiles(node, pod)),
      containers: containersOf(pod).map((container) => planned(pod, container)),
    })),
  };
}

const allocatableOf = (config: AgentConfig, machine: PlannedMachine) => ({
  capacity: {
    cpu: String(machine.cpuCores),
    memory: String(machine.memoryBytes),
    ...(machine.pidsMax === undefined ? {} : { pid: String(machine.pidsMax) }),
  },
  systemReserved: config.systemReserved,
  kubeReserved: config.kubeReserved,
  enforced: config.enforceNodeAllocatable,
});

const filesText = (files: CgroupFiles): string =>
  Object.entries(files)
    .map(([file, text]) => `${file} ${text}`)
    .join(', ');

function groupLines(indent: string, label: string, { files, notWritten }: PlannedGroup, more = ''): string[] {
  const written = [filesText(files), more].filter((text) => text !== '').join(', ');
  const lines = [`${indent}${label}  ${written === '' ? 'nothing' : written}`];
  if (Object.keys(notWritten).length > 0) lines.push(`${indent}  not enforced: ${filesText(notWritten)}`);
  return lines;
}

export function limitPlanLines(plan: LimitPlan): readonly string[] {
  const { directory, controllers, warning } = plan;
  return [
    directory === undefined
      ? 'No control groups'
      : `cgroup v2 in ${directory}, controllers ${controllers.join(', ') || 'none'}`,
    ...(warning === undefined ? [] : [`WARNING: ${warning}`]),
    ...plan.groups.flatMap((group) => groupLines('', group.path, group)),
    ...plan.pods.flatMap((pod) => [
      `${pod.namespace}/${pod.name}  ${pod.qosClass}`,
      ...groupLines('  ', pod.group.path, pod.group),
      ...pod.containers.flatMap((container) => {
        const data = container.dataBytesMax === undefined ? '' : `, RLIMIT_DATA ${container.dataBytesMax}`;
        return groupLines('  ', container.name, container, `oom_score_adj ${container.oomScoreAdjust}${data}`);
      }),
    ]),
  ];
}
