/**
 * The environment of a container. Source: upstream pkg/kubelet/kubelet_pods.go (makeEnvironmentVariables) and
 * third_party/forked/golang/expansion.
 */
import type { Container, EnvFromSource, EnvVar, KubePod } from '../../shared/kinds/types.ts';
import type { NodeEvent } from './node-event.ts';
import { type FieldValue, type MachineFacts, podFieldValue, resourceFieldValue } from './pod-fields.ts';
import { notFoundText, type ObjectKind, type ObjectSource } from './pod-objects.ts';

export type Variables = Readonly<Record<string, string>>;

export type ContainerEnv =
  | { readonly kind: 'variables'; readonly variables: Variables; readonly events: readonly NodeEvent[] }
  /** The container cannot be created. The message is that of its waiting state. */
  | { readonly kind: 'failed'; readonly message: string };

export interface EnvFacts {
  readonly pod: KubePod;
  readonly container: Container;
  readonly objects: ObjectSource;
  readonly machine: MachineFacts;
  /** Variables of services. All others replace them. */
  readonly services: Variables;
}

const NAME = /^[-._a-zA-Z][-._a-zA-Z0-9]*$/;
const KIND_NAMES: Readonly<Record<ObjectKind, string>> = { configmap: 'configMap', secret: 'secret' };

/** Replaces `$(NAME)` by the variable if it exists, and `$$` by a dollar sign. */
export const expand = (text: string, env: Variables): string =>
  text.replace(/\$(?:\$|\(([^()]*)\))/g, (whole, name: string | undefined) => {
    if (name === undefined) return '$';
    return Object.hasOwn(env, name) ? (env[name] ?? '') : whole;
  });

class EnvError extends Error {
  override readonly name = 'EnvError';
}

/** Variables of `env` replace those of `envFrom`, and later ones replace earlier ones. */
export function containerEnv(facts: EnvFacts): ContainerEnv {
  const events: NodeEvent[] = [];
  try {
    const variables = { ...facts.services };
    for (const source of facts.container.envFrom ?? []) {
      Object.assign(variables, variablesFrom(facts, source, events));
    }
    for (const variable of facts.container.env ?? []) {
      const text = textOf(facts, variable, variables);
      if (text !== undefined) variables[variable.name ?? ''] = text;
    }
    return { kind: 'variables', variables, events };
  } catch (error) {
    if (error instanceof EnvError) return { kind: 'failed', message: error.message };
    throw error;
  }
}

/** Also reports the keys that are no names of variables. */
function variablesFrom(facts: EnvFacts, source: EnvFromSource, events: NodeEvent[]): Variables {
  const { configMapRef, secretRef, prefix = '' } = source;
  const kind = configMapRef === undefined ? 'secret' : 'configmap';
  const { name = '', optional } = configMapRef ?? secretRef ?? {};
  const data = dataOf(facts, kind, name, optional) ?? {};
  const named = Object.entries(data).map(([key, text]): [string, string] => [prefix + key, text]);
  const skipped = named.map(([key]) => key).filter((key) => !NAME.test(key));
  if (skipped.length > 0) {
    const object = `${KIND_NAMES[kind]} ${facts.pod.metadata.namespace}/${name}`;
    events.push({
      type: 'Warning',
      reason: 'InvalidEnvironmentVariableNames',
      message: `Keys [${skipped.sort().join(', ')}] from the EnvFrom ${object} were skipped since they are considered invalid environment variable names.`,
    });
  }
  return Object.fromEntries(named.filter(([key]) => NAME.test(key)));
}

/** Undefined: an optional object or key does not exist, so the variable is not set. */
function textOf(facts: EnvFacts, { value = '', valueFrom }: EnvVar, earlier: Variables): string | undefined {
  if (value !== '' || valueFrom === undefined) return expand(value, earlier);
  const { pod, container, machine } = facts;
  const { fieldRef, resourceFieldRef, configMapKeyRef, secretKeyRef } = valueFrom;
  if (fieldRef !== undefined) return textOrThrow(podFieldValue(fieldRef.fieldPath ?? '', pod, machine));
  if (resourceFieldRef !== undefined) {
    return textOrThrow(resourceFieldValue(resourceFieldRef, pod, container, machine));
  }
  const kind = configMapKeyRef === undefined ? 'secret' : 'configmap';
  const { name = '', key = '', optional } = configMapKeyRef ?? secretKeyRef ?? {};
  const data = dataOf(facts, kind, name, optional);
  if (data !== undefined && Object.hasOwn(data, key)) return data[key];
  if (optional === true) return undefined;
  const kindName = kind === 'secret' ? 'Secret' : 'ConfigMap';
  throw new EnvError(`couldn't find key ${key} in ${kindName} ${pod.metadata.namespace}/${name}`);
}

/** Undefined when an optional object does not exist. @throws EnvError */
function dataOf({ objects }: EnvFacts, kind: ObjectKind, name: string, isOptional = false): Variables | undefined {
  const read = objects(kind, name);
  if (read.kind === 'missing' && isOptional) return undefined;
  if (read.kind === 'missing') throw new EnvError(notFoundText(kind, name));
  if (read.kind === 'failed') throw new EnvError(read.message);
  const { data = {} } = read.object;
  return kind === 'configmap' ? data : decodedData(data);
}

const decodedData = (data: Variables): Variables =>
  Object.fromEntries(Object.entries(data).map(([key, base64]) => [key, textOfBase64(base64)]));

function textOfBase64(base64: string): string {
  const binary = atob(base64);
  return new TextDecoder().decode(Uint8Array.from(binary, (character) => character.charCodeAt(0)));
}

/** @throws EnvError */
function textOrThrow(field: FieldValue): string {
  if (field.kind === 'value') return field.text;
  throw new EnvError(field.message);
}
