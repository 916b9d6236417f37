import { StartError } from '../../shared/host/start-error.ts';
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
  return new IntrinsicResolver(input);
}

class IntrinsicResolver implements Resolver {
  readonly #input: ResolverInput;

  constructor(input: ResolverInput) {
    this.#input = input;
  }

  properties(logicalId: string): JsonObject {
    const resource = this.#input.template.Resources[logicalId];
    if (resource === undefined) throw new StartError(`template: no resource ${logicalId}`);
    return this.#whole(resource.Properties ?? {}, `${logicalId} (${resource.Type})`) as JsonObject;
  }

  value(value: unknown, where: string) {
    return this.#whole(value, where);
  }

  included(logicalId: string): boolean {
    const name = this.#input.template.Resources[logicalId]?.Condition;
    return name === undefined || this.#namedCondition(name, logicalId);
  }

  #fail(where: string, what: string): never {
    throw new StartError(`template: ${where}: ${what}`);
  }

  #reference(name: string, where: string): Value {
    if (name === 'AWS::NoValue') return NO_VALUE;
    const pseudo = this.#input.pseudoParameters[name];
    if (pseudo !== undefined) return pseudo;
    const parameter = this.#input.template.Parameters?.[name];
    if (parameter !== undefined) return this.#parameterValue(name, where);
    const resource = this.#input.template.Resources[name];
    if (resource === undefined) return this.#fail(where, `Ref to ${name}, which the template does not define`);
    return (
      this.#input.physical.ref(name, resource) ??
      this.#fail(where, `Ref to ${name} (${resource.Type}) has no local counterpart`)
    );
  }

  #parameterValue(name: string, where: string): Json {
    const parameter = this.#input.template.Parameters?.[name];
    const text = this.#input.parameters[name] ?? parameter?.Default;
    if (text === undefined) return this.#fail(where, `parameter ${name} has neither a value nor a default`);
    if (parameter?.Type === 'Number') return Number(text);
    if (parameter?.Type === 'CommaDelimitedList' || parameter?.Type.startsWith('List<')) {
      return String(text).split(',');
    }
    return String(text);
  }

  #attribute(argument: unknown, where: string): Json {
    const [name, path] = typeof argument === 'string' ? splitOnce(argument) : Array.isArray(argument) ? argument : [];
    if (typeof name !== 'string' || typeof path !== 'string')
      return this.#fail(where, 'Fn::GetAtt needs a name and a path');
    const resource = this.#input.template.Resources[name];
    if (resource === undefined) return this.#fail(where, `Fn::GetAtt of ${name}, which the template does not define`);
    return (
      this.#input.physical.attribute(name, resource, path) ??
      this.#fail(where, `Fn::GetAtt ${name}.${path} (${resource.Type}) has no local counterpart`)
    );
  }

  #substitute(argument: unknown, where: string): string {
    const [text, variables] = Array.isArray(argument) ? argument : [argument, {}];
    if (typeof text !== 'string' || !isObject(variables)) return this.#fail(where, 'Fn::Sub needs a string');
    return text.replace(/\$\{(!?)([^}]+)\}/g, (_whole, literal: string, name: string) => {
      if (literal !== '') return `\${${name}}`;
      if (name in variables) return this.#asText(this.#resolve(variables[name], where), where);
      if (name.includes('.')) return this.#asText(this.#attribute(name, where), where);
      return this.#asText(this.#reference(name, where), where);
    });
  }

  #asText(value: Value, where: string): string {
    if (typeof value === 'string') return value;
    if (typeof value === 'number' || typeof value === 'boolean') return String(value);
    return this.#fail(where, 'a text was expected');
  }

  #asList(value: Value, where: string): Json[] {
    return Array.isArray(value) ? value : this.#fail(where, 'a list was expected');
  }

  #condition(value: unknown, where: string): boolean {
    if (!isObject(value)) return this.#fail(where, 'not a condition');
    const [name, argument] = onlyEntry(value);
    const parts = Array.isArray(argument) ? argument : [];
    switch (name) {
      case 'Condition':
        return this.#namedCondition(String(argument), where);
      case 'Fn::Equals':
        return (
          this.#asText(this.#resolve(parts[0], where), where) === this.#asText(this.#resolve(parts[1], where), where)
        );
      case 'Fn::Not':
        return !this.#condition(parts[0], where);
      case 'Fn::And':
        return parts.every((part) => this.#condition(part, where));
      case 'Fn::Or':
        return parts.some((part) => this.#condition(part, where));
      default:
        return this.#fail(where, `condition ${name} is not supported here`);
    }
  }

  #namedCondition(name: string, where: string): boolean {
    const definition = this.#input.template.Conditions?.[name];
    return definition === undefined
      ? this.#fail(where, `unknown condition ${name}`)
      : this.#condition(definition, where);
  }

  #intrinsic(name: string, argument: unknown, where: string): Value {
    const parts = Array.isArray(argument) ? argument : [];
    switch (name) {
      case 'Ref':
        return this.#reference(String(argument), where);
      case 'Fn::GetAtt':
        return this.#attribute(argument, where);
      case 'Fn::Sub':
        return this.#substitute(argument, where);
      case 'Fn::Join':
        return this.#asList(this.#resolve(parts[1], where), where)
          .map((part) => this.#asText(part, where))
          .join(this.#asText(this.#resolve(parts[0], where), where));
      case 'Fn::Split':
        return this.#asText(this.#resolve(parts[1], where), where).split(
          this.#asText(this.#resolve(parts[0], where), where),
        );
      case 'Fn::Select': {
        const index = Number(this.#resolve(parts[0], where));
        return (
          this.#asList(this.#resolve(parts[1], where), where)[index] ??
          this.#fail(where, `Fn::Select ${index} is out of range`)
        );
      }
      case 'Fn::If':
        return this.#resolve(this.#namedCondition(String(parts[0]), where) ? parts[1] : parts[2], where);
      case 'Fn::FindInMap': {
        const [map, first, second] = parts.map((part) => this.#asText(this.#resolve(part, where), where));
        const found = this.#input.template.Mappings?.[map ?? '']?.[first ?? '']?.[second ?? ''];
        return found === undefined
          ? this.#fail(where, `Fn::FindInMap ${map} ${first} ${second} finds nothing`)
          : (found as Json);
      }
      default:
        return this.#fail(where, `${name} is not supported here`);
    }
  }

  #resolve(value: unknown, where: string): Value {
    if (Array.isArray(value)) {
      return value
        .map((entry, index) => this.#resolve(entry, `${where}[${index}]`))
        .filter((entry) => entry !== NO_VALUE);
    }
    if (!isObject(value)) return (value ?? null) as Json;
    const entries = Object.entries(value);
    const [name, argument] = onlyEntry(value);
    if (entries.length === 1 && (name === 'Ref' || name.startsWith('Fn::')))
      return this.#intrinsic(name, argument, where);
    const resolved: JsonObject = {};
    for (const [key, entry] of entries) {
      const result = this.#resolve(entry, `${where}.${key}`);
      if (result !== NO_VALUE) resolved[key] = result;
    }
    return resolved;
  }

  #whole(value: unknown, where: string): Json {
    const result = this.#resolve(value, where);
    return result === NO_VALUE ? null : result;
  }
}

function onlyEntry(value: Record<string, unknown>): [string, unknown] {
  return Object.entries(value)[0] ?? ['', undefined];
}

function splitOnce(text: string): [string, string] {
  const dot = text.indexOf('.');
  return [text.slice(0, dot), text.slice(dot + 1)];
}
