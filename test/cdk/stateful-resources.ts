/**
 * The resources of a template with data that cannot be recreated, and the changes that would lose it. CloudFormation
 * replaces a resource when its logical id, its type or one of these properties changes: the new one is empty.
 * Source: AWS CloudFormation template reference, "Update requires: Replacement" of each type.
 */
export interface StatefulResource {
  readonly type: string;
  readonly deletionPolicy: string;
  readonly updateReplacePolicy: string;
  /** Properties that replace the resource, or lose its data, when they change. */
  readonly identity: Readonly<Record<string, unknown>>;
}

export interface StatefulParts {
  readonly resources: Readonly<Record<string, StatefulResource>>;
  /** Names that scripts and commands read. */
  readonly outputs: readonly string[];
}

/** By type: the compared properties, and the data that is lost with them. */
const TYPES: Readonly<Record<string, { readonly identity: readonly string[]; readonly lost: string }>> = {
  'AWS::DynamoDB::Table': {
    identity: ['TableName', 'KeySchema', 'LocalSecondaryIndexes', 'StreamSpecification', 'TimeToLiveSpecification'],
    lost: 'every object in it',
  },
  'AWS::Logs::LogGroup': { identity: ['LogGroupName'], lost: 'what was logged' },
  'AWS::Logs::LogStream': { identity: ['LogGroupName', 'LogStreamName'], lost: 'what was logged' },
  'AWS::KMS::Key': { identity: ['KeySpec', 'KeyUsage', 'MultiRegion', 'Origin'], lost: 'all that it encrypted' },
  'AWS::ApiGatewayV2::Api': { identity: ['ProtocolType'], lost: 'the endpoint that machines and kubeconfigs know' },
  'AWS::ApiGatewayV2::DomainName': { identity: ['DomainName'], lost: 'the target of the DNS record' },
  'AWS::SNS::Topic': { identity: ['TopicName', 'FifoTopic'], lost: 'its subscriptions' },
  'AWS::Events::EventBus': { identity: ['Name'], lost: 'the rules of others on it' },
};

interface Template {
  readonly Resources?: unknown;
  readonly Outputs?: unknown;
}
interface TemplateResource {
  readonly Type: string;
  readonly Properties?: Readonly<Record<string, unknown>>;
  readonly DeletionPolicy?: string;
  readonly UpdateReplacePolicy?: string;
}

export function statefulParts({ Resources, Outputs }: Template): StatefulParts {
  const resources: Record<string, StatefulResource> = {};
  for (const [id, resource] of Object.entries((Resources ?? {}) as Record<string, TemplateResource>).sort()) {
    const {
      Type: type,
      Properties: properties = {},
      DeletionPolicy = 'Delete',
      UpdateReplacePolicy = 'Delete',
    } = resource;
    const known = TYPES[type];
    // Logs that may be deleted with the stack may be lost in an update as well.
    if (known === undefined || (type.startsWith('AWS::Logs::') && DeletionPolicy !== 'Retain')) continue;
    const identity = Object.fromEntries(
      known.identity.filter((name) => properties[name] !== undefined).map((name) => [name, properties[name]]),
    );
    resources[id] = { type, deletionPolicy: DeletionPolicy, updateReplacePolicy: UpdateReplacePolicy, identity };
  }
  return { resources, outputs: Object.keys((Outputs ?? {}) as object).sort() };
}

const REMEDY =
  'Undo it, or write down the migration in docs/operations/upgrade.md and then run with WRITE_SNAPSHOT=1 and npm run format.';
const RECORD =
  'Run the test with WRITE_SNAPSHOT=1, then npm run format, and commit the snapshot: it is compared from then on.';

/** One line per loss in an upgrade from `before` to `after`, and per resource that is not in the snapshot yet. */
export function upgradeFaults(before: StatefulParts, after: StatefulParts): readonly string[] {
  const faults: string[] = [];
  for (const [id, was] of Object.entries(before.resources)) {
    const is = after.resources[id];
    const lost = TYPES[was.type]?.lost ?? 'what it holds';
    if (is === undefined) {
      faults.push(
        `${id} (${was.type}) would be lost: no such logical id any more. Was a construct renamed or moved? Lost: ${lost}. ${REMEDY}`,
      );
      continue;
    }
    if (is.type !== was.type) {
      faults.push(`${id} would be replaced: it was ${was.type}, it is ${is.type}. Lost: ${lost}. ${REMEDY}`);
      continue;
    }
    for (const name of new Set([...Object.keys(was.identity), ...Object.keys(is.identity)])) {
      const [old, now] = [was.identity[name], is.identity[name]].map((value) => JSON.stringify(value) ?? 'absent');
      if (old !== now) {
        faults.push(
          `${id} (${was.type}) would be replaced, or emptied: ${name} was ${old}, is ${now}. Lost: ${lost}. ${REMEDY}`,
        );
      }
    }
    for (const name of ['deletionPolicy', 'updateReplacePolicy'] as const) {
      if (was[name] !== 'Delete' && is[name] === 'Delete') {
        faults.push(`${id} (${was.type}) would no longer be kept: ${name} was ${was[name]}, is Delete. ${REMEDY}`);
      }
    }
  }
  for (const [id, { type }] of Object.entries(after.resources)) {
    if (before.resources[id] === undefined) faults.push(`${id} (${type}) is new and not in the snapshot. ${RECORD}`);
  }
  for (const name of before.outputs) {
    if (!after.outputs.includes(name))
      faults.push(`the output ${name} would be deleted, and scripts read it. ${REMEDY}`);
  }
  for (const name of after.outputs) {
    if (!before.outputs.includes(name)) faults.push(`the output ${name} is new and not in the snapshot. ${RECORD}`);
  }
  return faults;
}
