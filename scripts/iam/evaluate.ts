/**
 * Whether a role may make a call, as IAM decides it for identity-based policies: an explicit Deny wins, then one Allow
 * is enough, and what nothing allows is denied. Source: IAM User Guide, "Policy evaluation logic", "Condition
 * operators".
 */
import { type Conditions, PolicyError, type Statement } from './role-policies.ts';

export interface Call {
  readonly action: string;
  readonly resource: string;
  readonly context: Readonly<Record<string, string | readonly string[]>>;
}

export type Decision =
  /** The statements that allow it. */
  | { readonly kind: 'allowed'; readonly by: readonly Statement[] }
  | { readonly kind: 'denied'; readonly by: Statement }
  | { readonly kind: 'notAllowed' };

/** @throws PolicyError for a condition operator that is not known here */
export function decide(statements: readonly Statement[], call: Call): Decision {
  const applying = statements.filter((statement) => applies(statement, call));
  const denying = applying.find(({ effect }) => effect === 'Deny');
  if (denying !== undefined) return { kind: 'denied', by: denying };
  return applying.length === 0 ? { kind: 'notAllowed' } : { kind: 'allowed', by: applying };
}

const applies = ({ actions, resources, conditions }: Statement, call: Call): boolean =>
  actions.some((action) => matches(action.toLowerCase(), call.action.toLowerCase())) &&
  resources.some((resource) => matches(resource, call.resource)) &&
  holds(conditions, call.context);

/** `*` stands for any text, `?` for one character. */
export function matches(pattern: string, text: string): boolean {
  const expression = pattern
    .replace(/[.+^${}()|[\]\\]/g, '\\$&')
    .replaceAll('*', '[^]*')
    .replaceAll('?', '[^]');
  return new RegExp(`^${expression}$`).test(text);
}

const COMPARISONS: Readonly<Record<string, (wanted: string, value: string) => boolean>> = {
  StringEquals: (wanted, value) => wanted === value,
  StringLike: matches,
};

/** All operators and all keys hold. Names of condition keys are the same in any case. */
function holds(conditions: Conditions, context: Call['context']): boolean {
  const values = new Map(
    Object.entries(context).map(([key, value]) => [key.toLowerCase(), typeof value === 'string' ? [value] : value]),
  );
  return Object.entries(conditions).every(([operator, keys]) => {
    if (operator === 'Null') {
      return Object.entries(keys).every(([key, wanted]) => wanted.includes(String(!values.has(key.toLowerCase()))));
    }
    const forAll = operator.startsWith('ForAllValues:');
    const compare = COMPARISONS[forAll ? operator.slice('ForAllValues:'.length) : operator];
    if (compare === undefined) throw new PolicyError(`the condition operator ${operator} is not known here`);
    return Object.entries(keys).every(([key, wanted]) => {
      const is = (value: string): boolean => wanted.some((each) => compare(each, value));
      const present = values.get(key.toLowerCase());
      // A key that the request does not carry has no value: all of none are well, a single one is missing.
      if (present === undefined) return forAll;
      return forAll ? present.every(is) : present.length === 1 && is(present[0]!);
    });
  });
}
