/** Apart from the code of the command, which is loaded when it is needed. */
export const PROVE_USAGE = [
  'nodekeeper prove --region REGION --yes [--profile PROFILE] [--facts ID,ID] [--minutes N] [--key FILE] [--output FILE]',
  '  measures what the documentation says of AWS with a stack of its own, and removes the stack; without --yes it prints its plan',
  'nodekeeper prove --remove JOURNAL [--profile PROFILE]    removes what an interrupted run has left',
  'nodekeeper prove --verify FILE [--public-key FILE]    checks the signature of a report',
  'nodekeeper prove --list    the facts',
].join('\n');
