/**
 * One template of several: what differs is chosen by conditions. Resources and outputs that only some templates have
 * get a `Condition`, properties and items of lists `Fn::If`.
 *
 * The first template is that without any option. Each other one has one option more than the template that it is over.
 * An option changes the same in every template: `mergedTemplate` refuses two options that change one value, unless they
 * exclude each other. That they add up is what test/release/terraform.test.ts compares, for each pair of options.
 */
import { isDeepStrictEqual } from 'node:util';

export interface Template {
  readonly Parameters: Readonly<Record<string, { readonly Type: string }>>;
  readonly Conditions?: Readonly<Record<string, unknown>>;
  readonly Resources: Readonly<Record<string, TemplateResource>>;
  readonly Outputs: Readonly<Record<string, TemplateOutput>>;
  readonly [section: string]: unknown;
}
export interface TemplateResource {
  readonly Type: string;
  readonly Condition?: string;
  readonly DependsOn?: string | readonly string[];
  readonly Properties: Readonly<Record<string, unknown>>;
  readonly Metadata?: Readonly<Record<string, unknown>>;
  readonly [attribute: string]: unknown;
}
export interface TemplateOutput {
  readonly Condition?: string;
  readonly Value: unknown;
  readonly Description?: string;
}

/** A template with an option. */
export interface Variant {
  readonly option: string;
  /** Index of the template that it is over. */
  readonly over: number;
  /** Options with the same group exclude each other. */
  readonly group: string | undefined;
  readonly template: Template;
}

/** The parameter and the condition of an option. */
export const conditionOf = (option: string): string => `Has${option}`;

const NO_VALUE = { Ref: 'AWS::NoValue' };
const isFunction = (value: object): boolean =>
  Object.keys(value).some((key) => key === 'Ref' || key.startsWith('Fn::'));
const isPlain = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value) && !isFunction(value);

/** One value per template; undefined where a template has none. */
type Values = readonly unknown[];

/** @throws Error when two options change one value */
export function mergedTemplate(base: Template, variants: readonly Variant[]): Template {
  const merge = new Merge(variants);
  const templates = [base, ...variants.map(({ template }) => template)];
  const resources = merge.named(
    templates.map(({ Resources }) => Resources),
    (values, path) => merge.resource(values, path),
  );
  const outputs = merge.named(
    templates.map(({ Outputs }) => Outputs),
    (values, path) => merge.value(values, path) as object,
  );
  return {
    ...base,
    Conditions: { ...base.Conditions, ...merge.conditions },
    Resources: resources as Template['Resources'],
    Outputs: outputs as Template['Outputs'],
  };
}

class Merge {
  readonly conditions: Record<string, unknown> = {};
  readonly #variants: readonly Variant[];

  constructor(variants: readonly Variant[]) {
    this.#variants = variants;
    for (const { option } of variants)
      this.conditions[conditionOf(option)] = { 'Fn::Equals': [{ Ref: option }, 'true'] };
  }

  /** Resources or outputs by name. */
  named(
    sections: readonly Readonly<Record<string, object>>[],
    merged: (values: Values, path: string) => object,
  ): Record<string, object> {
    const names = [...new Set(sections.flatMap((section) => Object.keys(section)))];
    return Object.fromEntries(
      names.map((name) => {
        const values = sections.map((section) => section[name]);
        const content = merged(this.#inherited(values), name);
        return [name, values.includes(undefined) ? { Condition: this.#presence(values, name), ...content } : content];
      }),
    );
  }

  resource(values: Values, path: string): object {
    const resources = values as readonly TemplateResource[];
    const { Properties: _properties, DependsOn: _dependsOn, ...attributes } = resources[0]!;
    for (const { Properties: _own, DependsOn: _on, ...others } of resources) {
      if (!isDeepStrictEqual(others, attributes)) throw new Error(`${path}: an option changes an attribute`);
    }
    // CloudFormation refuses a dependency on a resource that a condition leaves out.
    const lists = resources.map(({ DependsOn: names = [] }) => [names].flat());
    const dependsOn = lists[0]!.filter((name) => lists.every((names) => names.includes(name)));
    return {
      ...attributes,
      ...(dependsOn.length > 0 && { DependsOn: dependsOn }),
      Properties: this.value(
        resources.map(({ Properties }) => Properties),
        path,
      ),
    };
  }

  value(values: Values, path: string): unknown {
    if (values.includes(undefined)) {
      const content = this.value(this.#inherited(values), path);
      return { 'Fn::If': [this.#presence(values, path), content, NO_VALUE] };
    }
    const [base] = values;
    if (values.every((value) => isDeepStrictEqual(value, base))) return base;
    if (values.every(isPlain)) {
      const names = [...new Set(values.flatMap((value) => Object.keys(value)))];
      return Object.fromEntries(
        names.map((name) => [
          name,
          this.value(
            values.map((value) => value[name]),
            `${path}.${name}`,
          ),
        ]),
      );
    }
    if (values.every((value) => Array.isArray(value))) {
      return this.#slots(values).map((slot, index) => this.value(slot, `${path}[${index}]`));
    }
    const changes = this.#changes(values);
    this.#requireOneAtATime(changes, path);
    return changes.reduce<unknown>(
      (otherwise, { option }) => ({ 'Fn::If': [conditionOf(option), values[this.#indexOf(option)], otherwise] }),
      base,
    );
  }

  /** A template without the value inherits that of another: it changes nothing. */
  #inherited(values: Values): Values {
    const first = values.find((value) => value !== undefined);
    const inherited: unknown[] = [values[0] ?? first];
    for (const [index, { over }] of this.#variants.entries()) inherited.push(values[index + 1] ?? inherited[over]);
    return inherited;
  }

  #indexOf(option: string): number {
    return this.#variants.findIndex((variant) => variant.option === option) + 1;
  }

  #changes(values: Values): readonly Variant[] {
    return this.#variants.filter(({ over }, index) => !isDeepStrictEqual(values[index + 1], values[over]));
  }

  #requireOneAtATime(changes: readonly Variant[], path: string): void {
    for (const [index, one] of changes.entries()) {
      for (const other of changes.slice(index + 1)) {
        const isAlone = one.group !== undefined && one.group === other.group;
        if (!isAlone && !this.#isOver(other, one))
          throw new Error(`${path}: ${one.option} and ${other.option} change it`);
      }
    }
  }

  #isOver(variant: Variant, other: Variant): boolean {
    const below = this.#variants[variant.over - 1];
    return below !== undefined && (below === other || this.#isOver(below, other));
  }

  /** Name of the condition under which there is a value. */
  #presence(values: Values, path: string): string {
    const isThere = values.map((value) => value !== undefined);
    const changes = this.#changes(isThere);
    if (changes.some(({ option }) => isThere[this.#indexOf(option)] === isThere[0])) {
      throw new Error(`${path}: options add and remove it`);
    }
    const names = changes.map(({ option }) => conditionOf(option));
    const terms = names.map((Condition) => ({ Condition }));
    const any = terms.length === 1 ? terms[0] : { 'Fn::Or': terms };
    const options = changes.map(({ option }) => option).join('Or');
    if (isThere[0] === true) {
      this.conditions[`HasNo${options}`] = { 'Fn::Not': [any] };
      return `HasNo${options}`;
    }
    if (terms.length > 1) this.conditions[`Has${options}`] = any;
    return `Has${options}`;
  }

  /** The items of lists in one order: those that are the same, or in the same place, in one slot. */
  #slots(lists: readonly (readonly unknown[])[]): readonly Values[] {
    const slots: unknown[][] = lists[0]!.map((item) => [item]);
    for (const [index, { over }] of this.#variants.entries()) {
      const own = index + 1;
      const list = lists[own]!;
      const below = slots.filter((slot) => slot[over] !== undefined);
      let [nextBelow, next, at] = [0, 0, 0];
      const place = (item: unknown, slot: unknown[] | undefined): void => {
        if (slot === undefined) {
          const added: unknown[] = [];
          added[own] = item;
          while (slots[at] !== undefined && slots[at]![over] === undefined) at += 1;
          slots.splice(at, 0, added);
          at += 1;
          return;
        }
        slot[own] = item;
        at = slots.indexOf(slot) + 1;
      };
      const ends = sameItems(
        below.map((slot) => slot[over]),
        list,
      );
      for (const [endBelow, end] of [...ends, [below.length, list.length] as const]) {
        const [left, right] = [endBelow - nextBelow, end - next];
        for (; next < end; next += 1, nextBelow += left === right ? 1 : 0) {
          place(list[next], left === right ? below[nextBelow] : undefined);
        }
        if (end < list.length) place(list[end], below[endBelow]);
        [nextBelow, next] = [endBelow + 1, end + 1];
      }
    }
    return slots.map((slot) => lists.map((_, index) => slot[index]));
  }
}

/** Places of a longest common subsequence in both lists. */
function sameItems(one: readonly unknown[], other: readonly unknown[]): readonly (readonly [number, number])[] {
  const lengths = Array.from({ length: one.length + 1 }, () => new Array<number>(other.length + 1).fill(0));
  for (let i = one.length - 1; i >= 0; i -= 1) {
    for (let j = other.length - 1; j >= 0; j -= 1) {
      lengths[i]![j] = isDeepStrictEqual(one[i], other[j])
        ? lengths[i + 1]![j + 1]! + 1
        : Math.max(lengths[i + 1]![j]!, lengths[i]![j + 1]!);
    }
  }
  const pairs: (readonly [number, number])[] = [];
  let [i, j] = [0, 0];
  while (i < one.length && j < other.length) {
    if (isDeepStrictEqual(one[i], other[j])) {
      pairs.push([i, j]);
      [i, j] = [i + 1, j + 1];
    } else if (lengths[i + 1]![j]! >= lengths[i]![j + 1]!) i += 1;
    else j += 1;
  }
  return pairs;
}
