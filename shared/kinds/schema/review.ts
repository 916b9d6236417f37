import { metadata } from '../../kubernetes/schema/meta.ts';
import {
  bool,
  embedded,
  kindStruct,
  list,
  listOf,
  optionalStruct,
  required,
  type StructSchema,
  struct,
  text,
  textList,
  textListMap,
} from '../../kubernetes/schema/schema.ts';

const AUTHORIZATION = 'io.k8s.api.authorization.v1';
const AUTHENTICATION = 'io.k8s.api.authentication.v1';

const selectorRequirement = struct(`${AUTHORIZATION}.FieldSelectorRequirement`, 'One demand of a selector.', {
  key: required(text('Key.')),
  operator: required(text('In, NotIn, Exists or DoesNotExist.')),
  values: textList('Values the operator compares with.'),
});

const selectorAttributes = (name: string): StructSchema =>
  struct(`${AUTHORIZATION}.${name}`, 'A selector the request is limited by.', {
    rawSelector: text('The selector as in the query.'),
    requirements: list(selectorRequirement, 'The selector, demand by demand.'),
  });

export const resourceAttributes: StructSchema = struct(
  `${AUTHORIZATION}.ResourceAttributes`,
  'A request for a resource.',
  {
    namespace: text('Namespace; all if empty.'),
    verb: text('Verb; * is all.'),
    group: text('API group; * is all.'),
    version: text('API version; * is all.'),
    resource: text('Resource; * is all.'),
    subresource: text('Subresource; none if empty.'),
    name: text('Name; all if empty.'),
    fieldSelector: optionalStruct(selectorAttributes('FieldSelectorAttributes'), 'Field selector.'),
    labelSelector: optionalStruct(selectorAttributes('LabelSelectorAttributes'), 'Label selector.'),
  },
);

export const nonResourceAttributes: StructSchema = struct(
  `${AUTHORIZATION}.NonResourceAttributes`,
  'A request for a path.',
  {
    path: text('Path of the URL.'),
    verb: text('HTTP verb.'),
  },
);

export const accessStatus: StructSchema = struct(
  `${AUTHORIZATION}.SubjectAccessReviewStatus`,
  'Whether it is allowed.',
  {
    allowed: required(bool('Whether it is allowed.')),
    denied: bool('Whether it is forbidden outright.'),
    reason: text('Why.'),
    evaluationError: text('What went wrong in finding out.'),
  },
);

export const selfSubjectAccessReview: StructSchema = kindStruct(
  `${AUTHORIZATION}.SelfSubjectAccessReview`,
  { group: 'authorization.k8s.io', version: 'v1', kind: 'SelfSubjectAccessReview' },
  'Asks whether the asker may do something.',
  {
    metadata,
    spec: required(
      embedded(
        struct(`${AUTHORIZATION}.SelfSubjectAccessReviewSpec`, 'What is asked for; one of the two.', {
          resourceAttributes: optionalStruct(resourceAttributes, 'A request for a resource.'),
          nonResourceAttributes: optionalStruct(nonResourceAttributes, 'A request for a path.'),
        }),
        'What is asked for.',
      ),
    ),
    status: embedded(accessStatus, 'The answer.'),
  },
);

const resourceRule = struct(`${AUTHORIZATION}.ResourceRule`, 'Things that may be done to resources.', {
  verbs: required(textList('Verbs.')),
  apiGroups: textList('API groups.'),
  resources: textList('Resources.'),
  resourceNames: textList('Names; all if empty.'),
});

const nonResourceRule = struct(`${AUTHORIZATION}.NonResourceRule`, 'Things that may be done to paths.', {
  verbs: required(textList('Verbs.')),
  nonResourceURLs: textList('Paths.'),
});

const rulesStatus = struct(`${AUTHORIZATION}.SubjectRulesReviewStatus`, 'What may be done.', {
  resourceRules: required(listOf(resourceRule, 'To resources.', {})),
  nonResourceRules: required(listOf(nonResourceRule, 'To paths.', {})),
  incomplete: required(bool('Whether there may be more.')),
  evaluationError: text('What went wrong in finding out.'),
});

export const selfSubjectRulesReview: StructSchema = kindStruct(
  `${AUTHORIZATION}.SelfSubjectRulesReview`,
  { group: 'authorization.k8s.io', version: 'v1', kind: 'SelfSubjectRulesReview' },
  'Asks what the asker may do in a namespace.',
  {
    metadata,
    spec: required(
      embedded(
        struct(`${AUTHORIZATION}.SelfSubjectRulesReviewSpec`, 'Where.', { namespace: text('Namespace in question.') }),
        'Where.',
      ),
    ),
    status: embedded(rulesStatus, 'The answer.'),
  },
);

export const userInfo: StructSchema = struct(`${AUTHENTICATION}.UserInfo`, 'Identity of a user.', {
  username: text('Name.'),
  uid: text('Unique id of the user; distinguishes users with the same name.'),
  groups: textList('Groups.'),
  extra: textListMap('Further attributes from the authenticator.'),
});

export const selfSubjectReview: StructSchema = kindStruct(
  `${AUTHENTICATION}.SelfSubjectReview`,
  { group: 'authentication.k8s.io', version: 'v1', kind: 'SelfSubjectReview' },
  'Returns the identity of the caller.',
  {
    metadata,
    status: embedded(
      struct(`${AUTHENTICATION}.SelfSubjectReviewStatus`, 'The answer.', {
        userInfo: embedded(userInfo, 'Who the asker is.'),
      }),
      'The answer.',
    ),
  },
);
