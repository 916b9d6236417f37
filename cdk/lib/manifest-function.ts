import type { RetentionDays } from 'aws-cdk-lib/aws-logs';
import type { Queue } from 'aws-cdk-lib/aws-sqs';
import type { Construct } from 'constructs';
import type { ListedFunction } from '../../functions/function-list.ts';
import { defined } from '../../shared/defined.ts';
import type { Policy } from '../../shared/fleet/policy.ts';
import type { Feature, FunctionNeeds, FunctionVariable, Trigger } from '../../shared/functions/function-manifest.ts';
import type { AddedFiles } from './bundle.ts';
import type { ReservedConcurrency } from './concurrency.ts';
import { allowDescribeInstances, allowDetachVolumes } from './ec2-actions.ts';
import type { CommonVariable, Complete } from './environment-check.ts';
import type { EventBus } from './event-bus.ts';
import { HandlerFunction } from './handler-function.ts';
import { InstanceChanges } from './instance-changes.ts';
import { type ClusterNetwork, connectToNetwork } from './network.ts';
import type { PartQueue } from './part-queue.ts';
import { TableStream } from './streams.ts';
import { allowTables } from './table-actions.ts';
import type { Tables } from './tables.ts';
import { type TickChain, WakeUps } from './tick.ts';

/** The parts of a cluster that its functions are connected to. */
export interface FunctionSurroundings {
  readonly clusterId: string;
  readonly policy: Policy;
  readonly metricsNamespace: string;
  readonly tables: Tables;
  readonly eventBus: EventBus;
  readonly deadLetters: Queue;
  /** The chain of node-monitor. */
  readonly tickChain: TickChain;
  /** The queue of node-marker. */
  readonly partQueue: PartQueue;
  readonly logRetention: RetentionDays;
  readonly reservedConcurrency: ReservedConcurrency;
  /** Where the functions send their calls from; undefined: from Lambda's own network. */
  readonly network: ClusterNetwork | undefined;
  /** Features that this cluster has. */
  readonly features: ReadonlySet<Feature>;
}

/** Values of the variables that manifests name. */
export type VariableValues = Readonly<Partial<Record<FunctionVariable, string>>>;

export interface ManifestFunctionProps {
  readonly manifest: ListedFunction;
  readonly surroundings: FunctionSurroundings;
  readonly variables: VariableValues;
  /** Variables of this function only. They override those of every function. */
  readonly environment?: Readonly<Record<string, string>>;
  readonly files?: AddedFiles;
}

/** `pod-gc` to `PodGc`: the id of a function's construct. A different id replaces the function. */
export const constructIdOf = (name: string): string =>
  name.replaceAll(/(?:^|-)([a-z])/g, (_, letter: string) => letter.toUpperCase());

/**
 * A function as its manifest describes it: environment, permissions and triggers. The constructs that own the HTTP API
 * and the function URLs connect these requests to the function.
 */
export class ManifestFunction extends HandlerFunction {
  constructor(scope: Construct, props: ManifestFunctionProps) {
    const { manifest, surroundings } = props;
    const needs = needsOf(manifest, surroundings.features);
    super(scope, constructIdOf(manifest.name), {
      functionName: manifest.name,
      description: manifest.description,
      environment: {
        ...commonVariables(manifest.name, surroundings),
        ...environmentOf(manifest.name, needs, props.variables),
        ...props.environment,
      },
      memoryMegabytes: manifest.memoryMegabytes,
      timeoutSeconds: manifest.timeoutSeconds,
      logRetention: surroundings.logRetention,
      ...defined({ files: props.files, reservedConcurrency: surroundings.reservedConcurrency[manifest.name] }),
    });
    if (surroundings.network !== undefined) connectToNetwork(this, surroundings.network);
    for (const need of needs) this.#allow(need, surroundings);
    for (const trigger of manifest.triggers) this.#connect(scope, trigger, surroundings);
  }

  #allow(needs: FunctionNeeds, { tables, eventBus, partQueue, clusterId }: FunctionSurroundings): void {
    if (needs.environment?.includes('PART_QUEUE_URL')) partQueue.allowSending(this);
    if (needs.tables !== undefined) allowTables(this, needs.tables, tables);
    if (needs.publishesEvents === true) eventBus.allowSending(this);
    if (needs.ec2?.includes('DescribeInstances')) allowDescribeInstances(this);
    if (needs.ec2?.includes('DetachVolumes')) allowDetachVolumes(this, clusterId);
  }

  #connect(scope: Construct, trigger: Trigger, surroundings: FunctionSurroundings): void {
    const { deadLetters, tables } = surroundings;
    switch (trigger.kind) {
      case 'tick':
        if (trigger.chain === true) surroundings.tickChain.drive(this);
        else new WakeUps(scope, `${this.node.id}Tick`, { target: this, deadLetters });
        break;
      case 'stream': {
        const { id, table, filters } = trigger;
        new TableStream(scope, id, { table: tables[table], target: this, filters, deadLetters });
        break;
      }
      case 'instanceStates':
        new InstanceChanges(scope, trigger.id, { target: this, states: trigger.states });
        break;
      case 'parts':
        surroundings.partQueue.drive(this);
        break;
      case 'http':
      case 'functionUrl':
        break;
    }
  }
}

const commonVariables = (
  name: string,
  surroundings: FunctionSurroundings,
): Complete<Readonly<Record<CommonVariable, string>>> => ({
  CLUSTER_ID: surroundings.clusterId,
  POWERTOOLS_SERVICE_NAME: name,
  POWERTOOLS_METRICS_NAMESPACE: surroundings.metricsNamespace,
  POWERTOOLS_LOG_LEVEL: 'WARN',
});

/** What a function needs always, and with the features of the cluster. */
const needsOf = (manifest: ListedFunction, features: ReadonlySet<Feature>): readonly FunctionNeeds[] => [
  manifest,
  ...[...features].flatMap((feature) => manifest.needsWith?.[feature] ?? []),
];

function environmentOf(
  name: string,
  needs: readonly FunctionNeeds[],
  variables: ManifestFunctionProps['variables'],
): Record<string, string> {
  const environment: Record<string, string> = {};
  const names = needs.flatMap((need) => [
    ...(need.environment ?? []),
    ...(need.publishesEvents === true ? (['EVENT_BUS'] as const) : []),
  ]);
  for (const variable of names) {
    const value = variables[variable];
    if (value === undefined) throw new Error(`${name} needs ${variable}, which the cluster does not set`);
    environment[variable] = value;
  }
  return environment;
}
