import { ESCAPE } from './escapes.js';

/**
 * Tokens that are recognized by their form. Quantifiers have bounds, and no two of them meet on the same characters, so that
 * the time is proportional to the text's length. Each pattern begins with letters.
 */

/** Three digits in Base64. */
const BASE64_DIGITS = '[MNO][DTjz][AEIMQUYcgk][w-z0-5]';

/** By how they begin. */
export const TOKENS: readonly string[] = [
  // models
  'sk-ant-[\\w-]{16,65536}', // Anthropic
  'sk-(?:proj|svcacct|service|admin|None|or-v1|helicone)-[\\w-]{20,65536}', // OpenAI, OpenRouter, Helicone
  'sk-[A-Za-z0-9]{20,65536}', // OpenAI, DeepSeek and others
  '(?:sk|pk)-lf-[\\w-]{8,65536}', // Langfuse
  '(?:gsk_|csk-)[A-Za-z0-9]{40,65536}', // Groq, Cerebras
  '(?:xai|pplx|nvapi|tvly|llx)-[\\w-]{30,65536}', // xAI, Perplexity, NVIDIA, Tavily, LlamaCloud
  'lsv2_(?:pt|sk)_[0-9a-f]{32}_[0-9a-f]{10}', // LangSmith
  'hf_[A-Za-z0-9]{30,65536}', // Hugging Face
  'api_org_[A-Za-z0-9]{30,65536}',
  'r8_[A-Za-z0-9]{30,65536}', // Replicate
  'tgp_v1_[\\w-]{30,65536}', // Together
  '(?:fc-|jina_)[0-9a-f]{32}\\w{0,64}', // Firecrawl, Jina
  'pcsk_\\w{40,65536}', // Pinecone
  'wandb_v1_\\w{30,65536}', // Weights & Biases
  'ABSK[A-Za-z0-9+/]{60,65536}={0,2}', // Amazon Bedrock
  'bedrock-api-key-[A-Za-z0-9+/]{20,65536}={0,2}',
  'e2b_[0-9a-f]{40}', // E2B
  'apify_api_[\\w-]{30,65536}', // Apify
  // code and packages
  'gh[pousr]_\\w{36,65536}', // GitHub
  'github_pat_\\w{22,65536}',
  'gl(?:pat|ptt|dt|rt|oas|ft|ffct|soat|cbt|agent|imt)-[\\w-]{20,128}(?:\\.[\\w-]{2,64}){0,3}', // GitLab
  'GR1348941[\\w-]{20,65536}',
  'AT(?:ATT3x|CTT3x|BB|TA)[\\w=-]{30,65536}', // Atlassian, Bitbucket, Trello
  'npm_[A-Za-z0-9]{36}',
  'pypi-AgE[\\w-]{50,65536}',
  'rubygems_[0-9a-z]{48}',
  'oy2[a-z0-9]{43}', // NuGet
  'cio[A-Za-z0-9]{32}', // crates.io
  'CLOJARS_[0-9a-z]{60}',
  'dckr_(?:pat|oat)_[\\w-]{20,65536}', // Docker
  'AKCp[A-Za-z0-9]{60,65536}', // Artifactory
  'cmVmd[A-Za-z0-9]{56,65536}',
  'sgp_(?:(?:[0-9a-fA-F]{16}|local)_)?[0-9a-fA-F]{40}', // Sourcegraph
  'slk_[0-9a-f]{64}',
  'BBDC-[\\w+/-]{40,65536}', // Bitbucket Data Center
  'spu-[0-9a-f]{32}', // Spectral
  'API-[A-Z0-9]{25,34}', // Octopus Deploy
  '(?:pat|sat)\\.[\\w-]{22}\\.[A-Za-z0-9]{24}\\.[A-Za-z0-9]{20}', // Harness
  'pn[ub]_[A-Za-z0-9]{36}', // Prefect
  'endr\\+[A-Za-z0-9-]{16}', // Endor Labs
  'sq[apu]_[0-9a-f]{40}', // SonarQube
  'CCIP(?:AT|RJ)_\\w{20,65536}', // CircleCI
  'bk(?:ua|ct|pt|at)_[0-9a-z]{40}', // Buildkite
  'sntry[su]_[\\w+/=]{20,65536}', // Sentry
  // clouds
  '(?:AKIA|ASIA|ABIA|ACCA|A3T[A-Z0-9])[A-Z0-9]{16}', // AWS
  'AIza[\\w-]{35}', // Google
  'ya29\\.[\\w-]{20,65536}',
  'GOCSPX-[\\w-]{28}',
  '1//0[\\w-]{30,65536}',
  'LTAI[A-Za-z0-9]{16,24}', // Alibaba
  'AKID[A-Za-z0-9]{32}', // Tencent
  'SCW[A-Z0-9]{17}', // Scaleway
  'AQVN[\\w-]{35,40}', // Yandex
  't1\\.[\\w-]{10,1024}={0,2}\\.[\\w-]{86}',
  'do[opr]_v1_[0-9a-f]{64}', // DigitalOcean
  'HRKU-[\\w-]{30,65536}', // Heroku
  'v1\\.0-[0-9a-f]{24}-[0-9a-f]{100,200}', // Cloudflare
  'cf(?:[ua]t|k)_[A-Za-z0-9]{48}',
  'tk-us-[\\w-]{48}', // Scalingo
  'salad_cloud_\\w{10,65536}', // Salad
  'f(?:m[12][ar]?|o1)_[\\w+/=-]{20,65536}', // Fly.io
  'rnd_[A-Za-z0-9]{32}', // Render
  'nfp_[A-Za-z0-9]{36,65536}', // Netlify
  'vercel_blob_rw_\\w{20,65536}',
  'pul-[0-9a-z]{40}', // Pulumi
  'tskey-[a-z]{3,10}-[\\w-]{10,65536}', // Tailscale
  'ops_eyJ[\\w+/-]{50,65536}={0,3}', // 1Password
  'A3-[A-Z0-9]{6}(?:-[A-Z0-9]{5,11}){4,5}',
  'hv[sbr]\\.[\\w-]{24,65536}', // Vault
  's\\.(?=[A-Za-z]{0,23}\\d)[A-Za-z0-9]{24}(?![\\w(.])',
  'dp\\.(?:pt|st|ct|sa|scim|audit)\\.[\\w-]{20,65536}', // Doppler
  'sha256~[\\w-]{43}', // OpenShift
  'rh-api-[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}', // Red Hat
  '(?:sc|ext|scauth|authress)_[a-z0-9]{5,30}\\.[a-z0-9]{4,6}\\.acc[_-][a-z0-9-]{10,32}\\.[\\w+/=-]{30,120}', // Authress
  'AGE-SECRET-KEY-1[A-Z0-9]{50,65536}',
  // data
  'dapi[0-9a-f]{32}', // Databricks
  'sbp_[0-9a-z]{40}', // Supabase
  'sb_secret_[\\w-]{20,65536}',
  'pscale_(?:tkn|oauth|pw)_[\\w=.-]{32,65536}', // PlanetScale
  'napi_[a-z0-9]{40,65536}', // Neon
  'npg_[A-Za-z0-9]{12,65536}',
  'AVNS_[\\w-]{16,65536}', // Aiven
  'pat[A-Za-z0-9]{14}\\.[0-9a-f]{64}', // Airtable
  '4b1d(?=[0-9a-f]{0,37}[g-zA-Z])[A-Za-z0-9]{38}(?![A-Za-z0-9])', // ClickHouse
  'sm_[aps]at_[A-Za-z0-9]{16}', // SettleMint
  // messages and mail
  'xox[a-z]-(?:[\\w.-]|%(?:2[BbFf]|3[Dd])){10,65536}', // Slack
  'xapp-\\d-[\\w-]{10,65536}',
  `${BASE64_DIGITS}(?:${BASE64_DIGITS}){5}[A-Za-z0-9]{0,4}\\.[\\w-]{6}\\.[\\w-]{27,38}`, // Discord: the user's number comes first
  'SG\\.[\\w-]{16,32}\\.[\\w-]{30,65536}', // SendGrid
  'SK[0-9a-fA-F]{32}', // Twilio
  'key-[0-9a-f]{32}', // Mailgun
  'x(?:keys|smtps)ib-[0-9a-f]{64}-\\w{16}', // Brevo
  're_[A-Za-z0-9]{8}_[A-Za-z0-9]{20,65536}', // Resend
  // money and shops
  '(?:sk|rk)_(?:live|test|prod|dev|sbox)_[A-Za-z0-9]{10,65536}', // Stripe, Clerk, Paystack
  'pi_[A-Za-z0-9]{24}_secret_[A-Za-z0-9]{25}',
  'ramp_sec_[A-Za-z0-9]{48}', // Ramp
  '(?:live|test)_[0-9a-f]{35}', // Lob
  'sk_[0-9a-f]{48}', // ElevenLabs
  'sq0(?:atp|csp)-[\\w-]{22,65536}', // Square
  'EAAA[\\w-]{56,65536}',
  'EAA[A-Za-z0-9]{80,65536}', // Facebook
  'sk_[a-z]{1,32}_[A-Za-z0-9]{40,65536}',
  'sk_(?:test_)?\\d{1,2}x\\d_[0-9a-fA-F]{64}', // Recharge
  'ak_live_[A-Za-z0-9]{30}',
  'flb_live_[A-Za-z0-9]{20}',
  'sqco_[A-Za-z0-9]{59}',
  'whsec_[A-Za-z0-9+/]{16,65536}={0,2}',
  'shp(?:at|ca|pa|ss)_[0-9a-fA-F]{32}', // Shopify
  'shippo_(?:live|test)_[0-9a-fA-F]{40}',
  'duffel_(?:live|test)_[\\w=-]{40,65536}', // Duffel
  's(?:andbox_s)?k_pr_\\w{42,110}', // Photoroom
  'EZ[AT]K[A-Za-z0-9]{54}', // EasyPost
  'FLWSECK(?:_TEST)?-[\\w-]{12,65536}', // Flutterwave
  'access-(?:sandbox|development|production)-[0-9a-f-]{36}', // Plaid
  // work and observability
  'lin_(?:api|oauth)_[A-Za-z0-9]{32,65536}', // Linear
  '(?:ntn_|secret_)[A-Za-z0-9]{40,65536}', // Notion
  'fig[do]_[\\w-]{20,65536}', // Figma
  'fio-u-[\\w=-]{60,65536}', // Frame.io
  'p8e-[A-Za-z0-9]{32}', // Adobe
  'VF\\.(?:(?:DM|WS)\\.)?[0-9a-fA-F]{24}\\.[A-Za-z0-9]{16}', // Voiceflow
  'CFPAT-[\\w-]{40,65536}', // Contentful
  'tfp_[\\w.-]{40,65536}', // Typeform
  'pat-(?:na|eu)\\d-[0-9a-f-]{36}', // HubSpot
  'PMAK-[A-Za-z0-9-]{20,65536}', // Postman
  'glsa_[A-Za-z0-9]{32}_[0-9a-fA-F]{8}', // Grafana
  'glc_[\\w+/=]{32,65536}',
  'eyJrIjoi[A-Za-z0-9+/]{40,65536}={0,2}',
  'ico-[A-Za-z0-9]{32}', // Infracost
  'rootly_[0-9a-f]{64}', // Rootly
  'dd[pw]_[A-Za-z0-9]{36}', // Datadog
  'NF-[A-Za-z0-9]{32}', // Nightfall
  'bb_(?:pr|ma)_[0-9a-f]{30}', // Bannerbear
  'shltm_[\\w-]{40}', // Shortcut
  'thog-secret-[0-9a-f]{32}', // TruffleHog
  'NR(?:AK|JS|II|IQ|RA|BR)-[\\w-]{19,65536}', // New Relic
  'dt0[a-z]\\d\\d\\.[A-Za-z0-9]{24}\\.[A-Za-z0-9]{64}', // Dynatrace
  'ph[xs]_[A-Za-z0-9]{32,65536}', // PostHog
  '(?:sdk|api)-[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}', // LaunchDarkly
  'rdme_[a-z0-9]{70}', // ReadMe
  'sl\\.[\\w-]{100,65536}', // Dropbox
  'aio_[A-Za-z0-9]{28}', // Adafruit
  '[su]-s4t2(?:ud|af)-[0-9a-f]{64}', // Intra42
  'dnkey-[\\w=-]{26}-[\\w=-]{52}', // Defined Networking
];

/** Where no such character or an escape comes before. */
const after = (characters: string) => `(?:(?<![${characters}])|(?<=${ESCAPE}))`;

/**
 * Tokens that have a mark in their middle: without the mark, the text needs not be searched for the token. Before a JSON web
 * token a lookbehind is needed: any part of its run could begin another one.
 */
const MARKED: readonly (readonly [mark: string, token: string])[] = [
  ['\\.eyJ', `(?=eyJ)${after('\\w-')}eyJ[\\w-]{8,8192}\\.eyJ[\\w-]{8,65536}(?:\\.[\\w-]{8,65536})?`], // also unsigned
  ['\\dQ~', '[\\w~.-]{3}\\dQ~[\\w~.-]{31,34}'], // Azure
  ['AZDO', `${after('A-Za-z0-9')}[A-Za-z0-9]{76}AZDO[A-Za-z0-9]{4}`], // Azure DevOps
  [':AA', `(?=\\d)${after('\\d')}\\d{8,10}:AA[\\w-]{32,34}`], // Telegram
  ['\\d\\|', `(?=\\d)${after('\\d')}\\d{15,16}\\|[\\w-]{27,40}`], // Facebook
  ['\\.atlasv1\\.', `${after('A-Za-z0-9')}[A-Za-z0-9]{14}\\.atlasv1\\.[\\w-]{60,65536}`], // Terraform
  ['\\.G', `(?=[MNO])${after('\\w-')}[MNO][\\w-]{23,25}\\.G[\\w-]{5}\\.[\\w-]{27,38}`], // Discord
  ['[0-9a-f]-us\\d', `(?=[0-9a-f])${after('\\w')}[0-9a-f]{32}-us\\d{1,2}(?!\\w)`], // Mailchimp
  ['_mmk', `${after('A-Za-z0-9')}[A-Za-z0-9]{6}_[A-Za-z0-9]{29}_mmk`], // MaxMind
];

export const MARK = new RegExp(MARKED.map(([mark]) => mark).join('|'));

export const MARKED_TOKENS: readonly { readonly mark: RegExp; readonly token: RegExp }[] = MARKED.map(
  ([mark, token]) => ({ mark: new RegExp(mark), token: new RegExp(token, 'g') }),
);
