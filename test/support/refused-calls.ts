/**
 * Calls that the role of a function must refuse, from what a run of the whole system called: never from the policies,
 * which would then agree with themselves.
 */
import type { CountedCall } from '../../aws-local/calls/recorder.ts';
import { type Call, matches } from '../../scripts/iam/evaluate.ts';
import type { Exception } from '../../scripts/iam/exceptions.ts';

export interface RefusedCall extends Call {
  readonly functionName: string;
  /** How it differs from a call that the function makes. */
  readonly because: string;
}

const LEADING_KEYS = 'dynamodb:LeadingKeys';
/** Only this table is granted by partitions: it has keys and tokens beside the state of the controllers. */
const CONTROL = /:table\/\w+-\w*Control\w*$/;
const ITEM_ACTIONS = [
  'BatchGetItem',
  'ConditionCheckItem',
  'DeleteItem',
  'GetItem',
  'PutItem',
  'Query',
  'Scan',
  'UpdateItem',
];
/**
 * For each service that a function calls: what no function may do with its resources. The service puts no leading keys
 * into the context of an action on a whole table.
 */
const NEVER: readonly { readonly resource: RegExp; readonly actions: readonly string[]; readonly isOfTable?: true }[] =
  [
    { resource: /:table\/[^/]+$/, actions: ['BatchWriteItem', 'PartiQLSelect', 'PartiQLDelete'] },
    {
      resource: /:table\/[^/]+$/,
      actions: ['DeleteTable', 'UpdateTable', 'CreateBackup', 'UpdateTimeToLive', 'PutResourcePolicy'],
      isOfTable: true,
    },
    { resource: /:sqs:/, actions: ['PurgeQueue', 'DeleteQueue', 'AddPermission', 'SetQueueAttributes'] },
    { resource: /:function:/, actions: ['UpdateFunctionCode', 'GetFunction', 'DeleteFunction', 'AddPermission'] },
    { resource: /:log-stream:/, actions: ['DeleteLogStream', 'GetLogEvents'] },
    { resource: /:event-bus\//, actions: ['DeleteEventBus'] },
    { resource: /:instance\//, actions: ['TerminateInstances', 'StopInstances', 'ModifyInstanceAttribute'] },
    { resource: /:volume\//, actions: ['DeleteVolume', 'AttachVolume', 'CreateSnapshot'] },
  ];

/** Partitions are named by the text before `#`, and those of ticks by their controller, too. */
const partitionOf = (key: string): string => (key.startsWith('tick#') ? key : key.replace(/#.*$/, ''));
const serviceOf = (action: string): string => action.slice(0, action.indexOf(':'));
const keyOf = ({ context }: Call): string | undefined => context[LEADING_KEYS] as string | undefined;
const withKeys = (keys: string | readonly string[]): Call['context'] => ({ [LEADING_KEYS]: keys });

export function refusedCalls(calls: readonly CountedCall[], exceptions: readonly Exception[]): readonly RefusedCall[] {
  const functions = [...new Set(calls.map(({ functionName }) => functionName))].toSorted();
  /** One key per partition of the control table. */
  const keys = new Map(
    calls.flatMap((call) => {
      const key = keyOf(call);
      return CONTROL.test(call.resource) && key !== undefined ? [[partitionOf(key), key] as const] : [];
    }),
  );
  return functions.flatMap((functionName) => {
    const own = calls.filter((call) => call.functionName === functionName);
    const isExcepted = (action: string, resource: string, key?: string): boolean =>
      exceptions.some(
        (each) =>
          each.functions.includes(functionName) &&
          each.actions.includes(action) &&
          matches(`*${each.resource}*`, resource) &&
          (each.partitions === undefined || key === undefined || each.partitions.some((one) => matches(one, key))),
      );
    const isUsed = (action: string, resource: string, partition?: string): boolean =>
      own.some(
        (call) =>
          call.action === action &&
          call.resource === resource &&
          (partition === undefined || partitionOf(keyOf(call) ?? '') === partition),
      );
    const refused = (because: string, { action, resource, context }: Call): RefusedCall => ({
      ...{ functionName, because, action, resource, context },
    });
    return [
      ...elsewhere(own).map((call) => refused('in another account or Region', call)),
      ...never(own).map((call) => refused('an action of no function', call)),
      ...ofOthers(own, calls)
        .filter(({ action, resource }) => !isExcepted(action, resource))
        .map((call) => refused('on a resource of another function', call)),
      ...unusedActions(calls)
        .filter(({ action, resource }) => !isUsed(action, resource) && !isExcepted(action, resource))
        .map((call) => refused('an action that it does not use on this table', call)),
      ...foreignKeys(own, keys)
        .filter(({ action, resource, foreign }) => {
          return !isUsed(action, resource, partitionOf(foreign)) && !isExcepted(action, resource, foreign);
        })
        .flatMap(({ action, resource, foreign, ownKey }, index) => [
          refused('in the partition of another function', { action, resource, context: withKeys(foreign) }),
          // Mixed with an own one, a few stand for all.
          ...(index % 10 === 0
            ? [
                refused('also in the partition of another function', {
                  ...{ action, resource, context: withKeys([ownKey, foreign]) },
                }),
              ]
            : []),
        ]),
      ...withoutConditions(own).map((call) => refused('without what its conditions ask for', call)),
    ];
  });
}

/** One call for each action on each resource. */
const distinct = <T extends Call>(calls: readonly T[]): readonly T[] => [
  ...new Map(calls.map((call) => [`${call.action} ${call.resource}`, call])).values(),
];

const elsewhere = (own: readonly CountedCall[]): readonly Call[] =>
  distinct(own)
    .filter(({ resource }) => resource !== '*')
    .flatMap(({ action, resource, context }) => {
      const [arn, partition, service, region, account, ...name] = resource.split(':');
      const at = (where: readonly (string | undefined)[]) => ({
        ...{ action, context, resource: [arn, partition, service, ...where, ...name].join(':') },
      });
      return [at([region, '111122223333']), at(['eu-west-3', account])];
    });

const never = (own: readonly CountedCall[]): readonly Call[] => {
  const resources = [...new Map(own.map((call) => [call.resource, call])).values()];
  return resources.flatMap(({ action, resource, context }) =>
    NEVER.filter((each) => each.resource.test(resource)).flatMap(({ actions, isOfTable }) =>
      actions.map((name) => ({
        ...{ action: `${serviceOf(action)}:${name}`, resource, context: isOfTable === true ? {} : context },
      })),
    ),
  );
};

/** Queues, functions, log groups and buses. */
const ofOthers = (own: readonly CountedCall[], all: readonly CountedCall[]): readonly Call[] => {
  const isOwn = new Set(own.map(({ resource }) => resource));
  const others = distinct(all).filter(
    ({ action, resource }) => serviceOf(action) !== 'dynamodb' && !isOwn.has(resource),
  );
  return others.filter(({ resource }) => resource !== '*');
};

const unusedActions = (all: readonly CountedCall[]): readonly Call[] => {
  const tables = new Map(
    all.filter(({ resource }) => /:table\/[^/]+$/.test(resource)).map((each) => [each.resource, each]),
  );
  return [...tables.values()].flatMap(({ resource, context }) =>
    ITEM_ACTIONS.map((name) => ({
      ...{ action: `dynamodb:${name}`, resource, context: name === 'Scan' ? {} : context },
    })),
  );
};

const foreignKeys = (own: readonly CountedCall[], keys: ReadonlyMap<string, string>) =>
  distinct(own)
    .filter((call) => CONTROL.test(call.resource) && keyOf(call) !== undefined)
    .flatMap((call) =>
      [...keys.values()].map((foreign) => ({
        ...{ action: call.action, resource: call.resource, foreign, ownKey: keyOf(call) ?? '' },
      })),
    );

/** Requests for the control table without a key, and for volumes without the tag of the cluster. */
const withoutConditions = (own: readonly CountedCall[]): readonly Call[] =>
  distinct(own).flatMap(({ action, resource, context }): Call[] => {
    if (CONTROL.test(resource)) return [{ action, resource, context: {} }];
    if (resource.includes(':volume/')) {
      const tagged = Object.keys(context).filter((key) => key.startsWith('aws:ResourceTag/'));
      const without = Object.fromEntries(Object.entries(context).filter(([key]) => !tagged.includes(key)));
      const another = Object.fromEntries(tagged.map((key) => [key, 'another-cluster']));
      return [without, { ...without, ...another }].map((each) => ({ action, resource, context: each }));
    }
    return [];
  });
