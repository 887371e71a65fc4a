-- title: Sales by customer
-- The price may be; the semicolon here is in a comment.
SELECT name, count(*) AS orders, sum(price * quantity) AS sales
FROM order_items JOIN customers ON customers.id = customer_id
GROUP BY name ORDER BY sales DESC;

-- title: Orders without a customer
SELECT "order", price FROM order_items
WHERE customer_id NOT IN (SELECT id FROM customers);

SELECT substr(date, 1, 7) AS month, sum(sum(price * quantity)) OVER (ORDER BY substr(date, 1, 7))
  AS running
FROM order_items GROUP BY month
