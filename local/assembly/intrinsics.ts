import { StartError } from '../start-error.ts';
import { isObject, type Json, type JsonObject, type Template, type TemplateResource } from './template.ts';

/**
 * CloudFormation's intrinsic functions, worked out for one machine. What a resource is called here (`Ref`) and what it
 * offers (`Fn::GetAtt`) comes from `physical`; anything it, or this file, does not know is refused by name, because a
 * silently empty value would only show much later, inside a function.
 */
export interface PhysicalNames {
  /** The value of `Ref` on a resource, or undefined when the local mode has no idea of that type. */
  ref(logicalId: string, resource: TemplateResource): string | undefined;
  /** The value of `Fn::GetAtt`. */
  attribute(logicalId: string, resource: TemplateResource, name: string): string | undefined;
}

export interface ResolverInput {
  readonly template: Template;
  readonly physical: PhysicalNames;
  /** `AWS::Region` and the like. */
  readonly pseudoParameters: Readonly<Record<string, string>>;
  /** Values for the template's parameters; those without fall back to their default. */
  readonly parameters: Readonly<Record<string, string>>;
}

export interface Resolver {
  /** The properties of a resource, every intrinsic replaced. */
  properties(logicalId: string): JsonObject;
  /** One value found at `where`, a path for error messages. */
  value(value: unknown, where: string): Json;
  /** Whether the resource's Condition holds; true without one. */
  included(logicalId: string): boolean;
}

/** Stands for `AWS::NoValue`: the property or list entry that holds it disappears. */
const NO_VALUE = Symbol('AWS::NoValue');
type Value = Json | typeof NO_VALUE;

/** @throws StartError naming the resource when a value cannot be worked out here. */
export function createResolver(input: ResolverInput): Resolver {
  const { template, physical } = input;

  const fail = (where: string, what: string): never => {
    throw new StartError(`template: ${where}: ${what}`);
  };

  function reference(name: string, where: string): Value {
    if (name === 'AWS::NoValue') return NO_VALUE;
    const pseudo = input.pseudoParameters[name];
    if (pseudo !== undefined) return pseudo;
    const parameter = template.Parameters?.[name];
    if (parameter !== undefined) return parameterValue(name, where);
    const resource = template.Resources[name];
    if (resource === undefined) return fail(where, `Ref to ${name}, which the template does not define`);
    return physical.ref(name, resource) ?? fail(where, `Ref to ${name} (${resource.Type}) has no local counterpart`);
  }

  function parameterValue(name: string, where: string): Json {
    const parameter = template.Parameters?.[name];
    const text = input.parameters[name] ?? parameter?.Default;
    if (text === undefined) return fail(where, `parameter ${name} has neither a value nor a default`);
    if (parameter?.Type === 'Number') return Number(text);
    if (parameter?.Type === 'CommaDelimitedList' || parameter?.Type.startsWith('List<')) {
      return String(text).split(',');
    }
    return String(text);
  }

  function attribute(argument: unknown, where: string): Json {
    const [name, path] = typeof argument === 'string' ? splitOnce(argument) : Array.isArray(argument) ? argument : [];
    if (typeof name !== 'string' || typeof path !== 'string') return fail(where, 'Fn::GetAtt needs a name and a path');
    const resource = template.Resources[name];
    if (resource === undefined) return fail(where, `Fn::GetAtt of ${name}, which the template does not define`);
    return (
      physical.attribute(name, resource, path) ??
      fail(where, `Fn::GetAtt ${name}.${path} (${resource.Type}) has no local counterpart`)
    );
  }

  function substitute(argument: unknown, where: string): string {
    const [text, variables] = Array.isArray(argument) ? argument : [argument, {}];
    if (typeof text !== 'string' || !isObject(variables)) return fail(where, 'Fn::Sub needs a string');
    return text.replace(/\$\{(!?)([^}]+)\}/g, (_whole, literal: string, name: string) => {
      if (literal !== '') return `\${${name}}`;
      if (name in variables) return asText(resolve(variables[name], where), where);
      if (name.includes('.')) return asText(attribute(name, where), where);
      return asText(reference(name, where), where);
    });
  }

  function asText(value: Value, where: string): string {
    if (typeof value === 'string') return value;
    if (typeof value === 'number' || typeof value === 'boolean') return String(value);
    return fail(where, 'a text was expected');
  }

  function asList(value: Value, where: string): Json[] {
    return Array.isArray(value) ? value : fail(where, 'a list was expected');
  }

  function condition(value: unknown, where: string): boolean {
    if (!isObject(value)) return fail(where, 'not a condition');
    const [name, argument] = onlyEntry(value);
    const parts = Array.isArray(argument) ? argument : [];
    switch (name) {
      case 'Condition':
        return namedCondition(String(argument), where);
      case 'Fn::Equals':
        return asText(resolve(parts[0], where), where) === asText(resolve(parts[1], where), where);
      case 'Fn::Not':
        return !condition(parts[0], where);
      case 'Fn::And':
        return parts.every((part) => condition(part, where));
      case 'Fn::Or':
        return parts.some((part) => condition(part, where));
      default:
        return fail(where, `condition ${name} is not supported here`);
    }
  }

  function namedCondition(name: string, where: string): boolean {
    const definition = template.Conditions?.[name];
    return definition === undefined ? fail(where, `unknown condition ${name}`) : condition(definition, where);
  }

  function intrinsic(name: string, argument: unknown, where: string): Value {
    const parts = Array.isArray(argument) ? argument : [];
    switch (name) {
      case 'Ref':
        return reference(String(argument), where);
      case 'Fn::GetAtt':
        return attribute(argument, where);
      case 'Fn::Sub':
        return substitute(argument, where);
      case 'Fn::Join':
        return asList(resolve(parts[1], where), where)
          .map((part) => asText(part, where))
          .join(asText(resolve(parts[0], where), where));
      case 'Fn::Split':
        return asText(resolve(parts[1], where), where).split(asText(resolve(parts[0], where), where));
      case 'Fn::Select': {
        const index = Number(resolve(parts[0], where));
        return asList(resolve(parts[1], where), where)[index] ?? fail(where, `Fn::Select ${index} is out of range`);
      }
      case 'Fn::If':
        return resolve(namedCondition(String(parts[0]), where) ? parts[1] : parts[2], where);
      case 'Fn::FindInMap': {
        const [map, first, second] = parts.map((part) => asText(resolve(part, where), where));
        const found = template.Mappings?.[map ?? '']?.[first ?? '']?.[second ?? ''];
        return found === undefined
          ? fail(where, `Fn::FindInMap ${map} ${first} ${second} finds nothing`)
          : (found as Json);
      }
      default:
        return fail(where, `${name} is not supported here`);
    }
  }

  function resolve(value: unknown, where: string): Value {
    if (Array.isArray(value)) {
      return value.map((entry, index) => resolve(entry, `${where}[${index}]`)).filter((entry) => entry !== NO_VALUE);
    }
    if (!isObject(value)) return (value ?? null) as Json;
    const entries = Object.entries(value);
    const [name, argument] = onlyEntry(value);
    if (entries.length === 1 && (name === 'Ref' || name.startsWith('Fn::'))) return intrinsic(name, argument, where);
    const resolved: JsonObject = {};
    for (const [key, entry] of entries) {
      const result = resolve(entry, `${where}.${key}`);
      if (result !== NO_VALUE) resolved[key] = result;
    }
    return resolved;
  }

  function whole(value: unknown, where: string): Json {
    const result = resolve(value, where);
    return result === NO_VALUE ? null : result;
  }

  return {
    properties: (logicalId) => {
      const resource = template.Resources[logicalId];
      if (resource === undefined) throw new StartError(`template: no resource ${logicalId}`);
      return whole(resource.Properties ?? {}, `${logicalId} (${resource.Type})`) as JsonObject;
    },
    value: whole,
    included: (logicalId) => {
      const name = template.Resources[logicalId]?.Condition;
      return name === undefined || namedCondition(name, logicalId);
    },
  };
}

function onlyEntry(value: Record<string, unknown>): [string, unknown] {
  return Object.entries(value)[0] ?? ['', undefined];
}

function splitOnce(text: string): [string, string] {
  const dot = text.indexOf('.');
  return [text.slice(0, dot), text.slice(dot + 1)];
}
