// The examples. The docs of the dialects explain each difference in the last one.

const shop = `# A shop
User-agent: *
Disallow: /cart
Disallow: /checkout/
Disallow: /*?sort=
Allow: /cart/help
Crawl-delay: 5

User-agent: BargainBot
Disallow: /

Sitemap: https://shop.example/sitemap.xml
`;

const newspaper = `# A newspaper that wants to be found, and refuses the training of AI models
License: https://news.example/license.xml

User-agent: *
Disallow: /search
Disallow: /subscribers/
Content-Usage: train-ai=n
Content-Usage: /press/ train-ai=y
Content-Signal: search=yes, ai-input=no, ai-train=no

User-agent: GPTBot
User-agent: CCBot
Disallow: /

Sitemap: https://news.example/news.xml
`;

const faulty = `User-agent: ExampleBot
Crawl-delay: 5s
Dissallow: /private
Disallow: admin
Disallow /tmp

User-agent: *
Disallow: /shop
Disallow: /shop/cart
Allow: /blog
Disallow: /blog
Noindex: /old
Disallow: /a /b
Content-Signal: ai-training=no
Sitemap: sitemap.xml
`;

const disagreement = `User-agent: *
Disallow: /*.pdf$
Disallow: /docs
Allow: /docs/index.html
Disallow: /page
Allow: /page
Disallow: /%7Ejoe
Disallow: /s?b=1&a=2
Dissallow: /typo

Disallow: /late
`;

const tdmrep = `[
  {
    "location": "/open/*",
    "tdm-reservation": 0
  },
  {
    "location": "/*",
    "tdm-reservation": 1,
    "tdm-policy": "https://news.example/policies/tdm.json"
  }
]
`;

export const examples = [
  { title: "A shop", text: shop, name: "ExampleBot", urls: "https://shop.example/cart/help\nhttps://shop.example/cart\nhttps://shop.example/\nhttps://shop.example/tea?sort=price\nhttps://shop.example/robots.txt" },
  { title: "A newspaper", text: newspaper, name: "ExampleBot", urls: "https://news.example/2026/11/23/story\nhttps://news.example/press/release\nhttps://news.example/subscribers/1" },
  { title: "A file with faults", text: faulty, name: "ExampleBot", urls: "/private\n/admin\n/tmp\n/shop/cart\n/blog" },
  { title: "Seven disagreements", text: disagreement, name: "ExampleBot", urls: "/manual.pdf\n/docs/\n/page\n/~joe\n/s?b=1&a=2\n/typo\n/late" },
  { title: "A tdmrep.json", text: tdmrep, name: "ExampleBot", urls: "https://news.example/open/data\nhttps://news.example/story" },
];
