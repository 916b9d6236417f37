/** The text of `nodekeeper explain`. */
import { h, type JSX } from 'preact';
import { Failure } from './elements.ts';
import { readText } from './requests.ts';
import { usePoll } from './use-poll.ts';

const WHY_MS = 30_000;

interface WhyProps {
  /** Arguments of the command: kind, and NAME or NAMESPACE/NAME. */
  readonly subject: string;
  /** Changes with a new decision: the text is then read at once. */
  readonly changes?: string;
}

export function WhyText({ subject, changes = '' }: WhyProps): JSX.Element {
  const { value, failure } = usePoll(`${subject} ${changes}`, WHY_MS, () => readText(`/explain/${subject}`));
  return failure === undefined
    ? h('pre', { tabIndex: 0, role: 'region', 'aria-label': 'Explanation' }, value ?? 'Reading…')
    : h(Failure, { message: failure });
}

export const Why = ({ subject, title, changes = '' }: WhyProps & { readonly title: string }): JSX.Element =>
  h('details', { class: 'why', open: true }, h('summary', null, title), h(WhyText, { subject, changes }));
